import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { createWebhookVerifier } from '../../src/http/webhook-signature.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { draftSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { runCommand } from '../helpers/command.js';
import { useSystem } from '../helpers/system.js';

/** Deliveries to six receivers. `npm test -- integration -f webhooks --webhooks 100000` makes it 100,000 in all. */
const RECEIVERS = 6;
const DELIVERIES = Math.ceil(Number(process.env.WEBHOOK_DELIVERIES ?? 4_000) / RECEIVERS);
const MOVES = ['refunding', 'refunded', 'disputed'] as const;
const IN_ORDER = ['order.created', ...MOVES.map((move) => `order.${move}`)];
const ORDERS = Math.ceil(DELIVERIES / IN_ORDER.length);
const ORDERS_PER_ROW = 20;

const KEEPER = { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100', WEBHOOK_NETWORKS: '127.0.0.0/8' };
/** Orders that a keeper takes at once, and may send again if it is killed. */
const TAKE = 64;

/** Answers a request: `n` counts from 1. */
type Behaviour = (n: number, req: IncomingMessage, res: ServerResponse) => void;

const ok: Behaviour = (_, __, res) => void res.writeHead(204).end();

class Receiver {
  readonly name: string;
  secret = '';
  endpointId = '';
  port = 0;
  /** Event types of each order, by their first arrival. */
  readonly seen = new Map<string, string[]>();
  /** Event id → whether it was answered 2xx. */
  readonly #events = new Map<string, boolean>();
  /** First arrivals of the types that are in `IN_ORDER`. */
  arrived = 0;
  requests = 0;
  /** Requests with an event that was answered 2xx before. */
  again = 0;
  unsigned = 0;
  readonly #server: Server;

  constructor(name: string, behave: Behaviour) {
    this.name = name;
    this.#server = createServer((req, res) => {
      let body = '';
      req.on('data', (part: Buffer) => (body += part));
      req.on('end', () => {
        const event = JSON.parse(body) as { readonly id: string; readonly type: string; readonly orderId: string };
        if (this.#events.get(event.id) === true) this.again++;
        res.on('finish', () => res.statusCode < 300 && this.#events.set(event.id, true));
        const verdict = createWebhookVerifier([this.secret]).verify(req.headers['webhook-signature'], body);
        if (verdict !== 'good') this.unsigned++;
        else behave(++this.requests, req, res);
        if (res.statusCode >= 400 || this.#events.has(event.id)) return;
        this.#events.set(event.id, false);
        if (IN_ORDER.includes(event.type)) this.arrived++;
        const types = this.seen.get(event.orderId) ?? [];
        types.push(event.type);
        this.seen.set(event.orderId, types);
      });
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, '127.0.0.1', resolve));
    this.port = (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe('webhooks and stored notifications', () => {
  let api: Program;
  let keeper: Program;
  let buyers: Buyers;
  const receivers: Receiver[] = [];
  let example: ChildProcess | null = null;
  const system = useSystem(async ({ programs }) => {
    [api, keeper] = await Promise.all([
      programs.start('api', { env: KEEPER }),
      programs.start('keeper', { env: KEEPER }),
    ]);
  });
  after(async () => {
    await Promise.all(receivers.map((one) => one.close()));
    example?.kill();
  });

  const seckill = (...args: string[]) => runCommand(['webhooks', ...args], { ...system.stack.env, ...KEEPER });
  const created = async (url: string, ...more: string[]) => {
    const { code, lines, stderr } = await seckill('create', '--url', url, '--json', ...more);
    expect(code, stderr).to.equal(0);
    return lines[0] as { readonly endpointId: string; readonly secret: string };
  };

  const happened = async (kind: string, payload: object): Promise<unknown> => {
    const insert = 'INSERT INTO outbox (kind, `key`, payload) VALUES (?, ?, ?)';
    return system.stack.mysql.execute(insert, [kind, 'k', JSON.stringify(payload)]);
  };
  /** Waits until the keeper, which reads the endpoints once in a second, knows them. */
  const known = (endpoints: number, move: string): Promise<void> =>
    until(
      'the keeper knows the endpoints',
      async () => {
        await happened('orders_moved', { move, saleId: '1', orders: ['1'] });
        const sql =
          'SELECT COUNT(DISTINCT endpoint_id) AS n FROM webhook_deliveries JOIN webhook_endpoints AS e ON e.id = endpoint_id';
        return Number((await system.stack.mysql.query<{ n: string }>(sql))[0]?.n) === endpoints;
      },
      { everyMs: 500 },
    );

  /** Creates orders of different buyers, with their events in the outbox, later events first. */
  async function ordersWithEvents(): Promise<string[]> {
    const { mysql } = system.stack;
    const { saleId } = await draftSale(system.stack);
    buyers = new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
    const first = BigInt(Date.now()) << 22n;
    const ids = Array.from({ length: ORDERS }, (_, index) => String(first + BigInt(index)));
    for (let from = 0; from < ORDERS; from += 1000) {
      const rows = ids
        .slice(from, from + 1000)
        .map(
          (id, index) =>
            `(${id}, ${saleId}, 'buyer${(from + index) % 10}', 'k${from + index}', 'b', 1, 5, 0, 'cancelled')`,
        );
      await mysql.execute(
        `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, state)
          VALUES ${rows.join(',')}`,
      );
    }
    for (let from = 0; from < ORDERS; from += ORDERS_PER_ROW) {
      const orders = ids.slice(from, from + ORDERS_PER_ROW);
      const batch = { batchId: `b${from}`, saleId, orders, failed: [], paymentWindowMs: 900_000 };
      const payloads: [string, object][] = [
        ['batch_recorded', batch],
        ...MOVES.map((move): [string, object] => ['orders_moved', { move, saleId, orders }]),
      ];
      for (const [kind, payload] of payloads) await happened(kind, payload);
    }
    return ids;
  }

  it('deliver the events of each order in sequence to faulty receivers, even after the kill of a keeper', async () => {
    const down = new Receiver('down', ok);
    await down.listen();
    await down.close();
    receivers.push(
      new Receiver('well', ok),
      new Receiver('slow', (n, _, res) => void (n > 3 && setTimeout(() => res.writeHead(200).end(), n % 20))),
      new Receiver('in trouble', (n, _, res) => void res.writeHead(n <= 5 || n % 50 === 0 ? 500 : 200).end()),
      new Receiver('wrong', (n, _, res) => void res.writeHead(n % 50 === 0 ? 422 : 200).end()),
      new Receiver('closing', (n, req, res) => {
        if (n % 40 !== 0) return ok(n, req, res);
        res.writeHead(200, { 'content-length': '99' }).write('half', () => req.socket.destroy());
      }),
    );
    for (const one of receivers) await one.listen();
    receivers.push(down);
    for (const one of receivers) {
      Object.assign(one, await created(`http://127.0.0.1:${one.port}/${encodeURIComponent(one.name)}`));
    }
    const [well] = receivers;
    await known(receivers.length, 'expired');
    const startedMs = performance.now();
    const ids = await ordersWithEvents();
    await until('some are delivered', () => (well?.arrived ?? 0) > DELIVERIES / 4);
    await keeper.crash();
    const total = ORDERS * IN_ORDER.length;
    expect(well?.arrived, 'killed in the middle').to.be.below(total);
    keeper = await system.programs.start('keeper', { env: KEEPER });
    await down.listen();
    const whole = { everyMs: 200, grantedMs: 600_000 + total * 60 };
    for (const one of receivers) {
      await until(`${one.name} has all: ${total}`, () => one.arrived >= total, whole);
      for (const id of ids) expect(one.seen.get(id), `${one.name} ${id}`).to.deep.equal(IN_ORDER);
      expect(one.unsigned, one.name).to.equal(0);
    }
    const seconds = (performance.now() - startedMs) / 1000;
    const requests = receivers.reduce((sum, one) => sum + one.requests, 0);
    const kilobytes = Number(/^VmHWM:\s*([0-9]+)/m.exec(readFileSync(`/proc/${keeper.pid}/status`, 'utf8'))?.[1]);
    console.log(
      `      · ${total * RECEIVERS} deliveries in ${seconds.toFixed(0)} s, ${requests} requests, keeper at most ${Math.round(kilobytes / 1024)} MiB`,
    );
    await until('every endpoint works', async () => {
      const { lines } = await seckill('list', '--json');
      return (
        lines.length === RECEIVERS &&
        lines.every(({ state, failingSince }) => state === 'active' && failingSince === null)
      );
    });
    for (const { name, again } of receivers) {
      expect(again, `sent again to ${name} after the kill`).to.be.at.most(TAKE * IN_ORDER.length);
    }

    // The buyers of these orders are notified.
    const token = buyers.token('buyer3');
    const mine = Math.ceil((ORDERS - 3) / 10) * IN_ORDER.length;
    const stored = async (what: string): Promise<number> => {
      const sql = `SELECT COUNT(${what}) AS n FROM notifications WHERE sale_id = ?`;
      return Number((await system.stack.mysql.query<{ n: string }>(sql, [buyers.saleId]))[0]?.n);
    };
    await until('all notifications are stored', async () => (await stored('DISTINCT order_id, type')) === total);
    expect(await stored('*'), 'notifications, each once').to.equal(total);
    const page = await ask(`${api.url}/v1/me/notifications?unread=true&limit=10`, { token });
    const { notifications, next } = page.json as {
      readonly notifications: { readonly notificationId: string }[];
      readonly next: string;
    };
    expect(notifications).to.have.length(10);
    const read = await ask(`${api.url}/v1/me/notifications/read`, { method: 'POST', token, body: { upTo: next } });
    expect(read.json).to.deep.equal({ read: mine - 9 });
    const unread = await ask(`${api.url}/v1/me/notifications?unread=true`, { token });
    expect(unread.json.notifications).to.have.length(9);
    expect((await ask(`${api.url}/v1/me/notifications`)).status).to.equal(401);
  });

  it('reach the example, which verifies events and ignores repeats, and obey the command', async () => {
    let out = '';
    let err = '';
    const start = (secret: string): void => {
      const env = { PATH: process.env.PATH, PORT: '0', WEBHOOK_SECRET: secret };
      example = spawn(process.execPath, [join(REPO_DIR, 'examples/webhook-receiver/main.mjs')], { env });
      example.stdout?.setEncoding('utf8').on('data', (text: string) => (out += text));
      example.stderr?.setEncoding('utf8').on('data', (text: string) => (err += text));
    };
    for (const { endpointId } of receivers) expect((await seckill('remove', endpointId)).code).to.equal(0);
    const { endpointId, secret } = await created('http://127.0.0.1:1/', '--events', 'order.cancelled');
    expect((await seckill('test', endpointId)).stdout).to.match(/^failed: ECONNREFUSED/);
    start(secret);
    await until('the example listens', () => /port [0-9]+/.test(err));
    const url = `http://127.0.0.1:${/port ([0-9]+)/.exec(err)?.[1]}/`;
    expect((await seckill('edit', endpointId, '--url', url)).code).to.equal(0);
    const tested = await seckill('test', endpointId);
    expect([tested.code, tested.stdout.trim()], tested.stderr).to.deep.equal([0, 'delivered: status 204']);

    await known(1, 'cancelled');
    await happened('orders_moved', { move: 'cancelled', saleId: '7', orders: ['431234567890123456'] });
    await until('it arrives', () => out.includes('"orderId":"431234567890123456"'));
    await until(
      'it is marked',
      async () => (await seckill('deliveries', endpointId, '--state', 'due', '--json')).lines.length === 0,
    );
    const { lines } = await seckill('deliveries', endpointId, '--state', 'delivered', '--json');
    const delivery = lines.find(({ orderId }) => orderId === '431234567890123456');
    expect(delivery).to.include({ type: 'order.cancelled', orderId: '431234567890123456', saleId: '7', attempts: 1 });
    const printed = out;
    expect((await seckill('resend', endpointId, String(delivery?.deliveryId))).code).to.equal(0);
    await until('it is sent again', async () => {
      const again = await seckill('deliveries', endpointId, '--state', 'due', '--json');
      return again.lines.length === 0;
    });
    const count = (text: string): number => text.split(String(delivery?.eventId)).length - 1;
    expect([count(printed), count(out)], 'printed once').to.deep.equal([1, 1]);
    expect((await seckill('resend', endpointId, '999999999')).code).to.equal(1);

    expect((await seckill('edit', endpointId, '--new-secret')).stdout).to.match(
      /secret: whsec_.*\nThe previous secret signs too until 2/,
    );
    expect((await seckill('test', endpointId)).stdout.trim(), 'with the old secret').to.equal('delivered: status 204');
    const again = await seckill('edit', endpointId, '--new-secret');
    expect(again.code).to.equal(1);
    expect(again.stderr).to.match(/no other secret can be made before 2[^ ]*Z\.$/m);
    await system.stack.mysql.execute('UPDATE webhook_endpoints SET secret_before_until = UTC_TIMESTAMP(3)');
    expect((await seckill('edit', endpointId, '--new-secret')).code).to.equal(0);
    expect((await seckill('test', endpointId)).stdout.trim()).to.equal('failed: status 401');
    expect((await seckill('edit', endpointId, '--pause')).stdout).to.include('is paused');
    expect((await seckill('list')).stdout).to.match(/paused +/);
    for (const bad of [['--url', 'http://10.0.0.1/'], ['--events', 'order.lost'], []]) {
      expect((await seckill('edit', endpointId, ...bad)).code, bad.join(' ')).to.equal(2);
    }
    example?.kill();
    if (example !== null) await once(example, 'exit');
  });
});
