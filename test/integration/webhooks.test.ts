import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { draftSale } from '../chaos/harness/sales.js';
import { found, until } from '../chaos/harness/wait.js';
import { runCommand } from '../helpers/command.js';
import { useSystem } from '../helpers/system.js';

const KEEPER = { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100', WEBHOOK_NETWORKS: '127.0.0.0/8' };
describe('webhooks and stored notifications', () => {
  let api: Program;
  let example: ChildProcess | null = null;
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([programs.start('api', { env: KEEPER }), programs.start('keeper', { env: KEEPER })]);
  });
  after(() => void example?.kill());

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

  it('are listed for the buyer of an order, who marks them as read', async () => {
    const { saleId } = await draftSale(system.stack);
    const [orderId, userId] = [String(BigInt(Date.now()) << 22n), `ann-${saleId}`];
    await system.stack.mysql.execute(
      `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
        VALUES (?, ?, ?, 'k1', 'b', 1, 5, 0)`,
      [orderId, saleId, userId],
    );
    for (const move of ['refunding', 'refunded']) await happened('orders_moved', { move, saleId, orders: [orderId] });
    const token = new Buyers(saleId, system.stack.env.JWT_SECRET, () => []).token(userId);
    const url = `${api.url}/v1/me/notifications`;
    const list = async (query: string) => {
      const { json } = await ask(`${url}?unread=true${query}`, { token });
      return json as { notifications: { notificationId: string; orderId: string }[]; next: string | null };
    };
    const both = await found('a notification of each move', async () => {
      const { notifications } = await list('');
      return notifications.length === 2 ? notifications : null;
    });
    expect(both.map((one) => one.orderId)).to.deep.equal([orderId, orderId]);
    const { notifications, next } = await list('&limit=1');
    expect(notifications, 'the newest first').to.deep.equal(both.slice(0, 1));
    const read = await ask(`${url}/read`, { method: 'POST', token, body: { upTo: both[1]?.notificationId } });
    expect(read.json).to.deep.equal({ read: 1 });
    expect([(await list('')).notifications, next]).to.deep.equal([both.slice(0, 1), both[0]?.notificationId]);
    expect((await ask(url)).status).to.equal(401);
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
