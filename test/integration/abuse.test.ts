import { expect } from 'chai';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createTokenSigner } from '../../src/http/token.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';

const CONNECTIONS_MAX = 20;
/** The address from which tests connect and which the API sees as the client. All of 127.0.0.0/8 is this machine. */
const CLIENT = '127.0.0.9';

/** Repeats attacks that a tester tried on a live system, and checks what an honest buyer would notice. */
describe('abuse by accounts and strangers', () => {
  let api: Program;
  after(() => publish({})); // the stack outlives this file, so the rules must go before the programs end
  const system = useSystem(async ({ programs }) => {
    const env = {
      HTTP_TRUSTED_PROXIES: '127.0.0.1',
      HTTP_UNLIMITED_NETWORKS: '10.0.0.0/8',
      HTTP_CONNECTIONS_PER_ADDRESS_MAX: String(CONNECTIONS_MAX),
    };
    [api] = await Promise.all([programs.start('api', { env }), programs.start('worker'), programs.start('keeper')]);
  });

  const brief = (answer: Answer): string => `${answer.status} ${answer.json.code ?? answer.json.status}`;
  const tokenOf = (userId: string, roles: readonly string[] = []): string =>
    createTokenSigner(system.stack.env.JWT_SECRET)({ userId, roles, ttlMs: 600_000 });

  async function publish(rules: object): Promise<void> {
    const admin = { token: tokenOf('root', ['admin']) };
    const { version } = (await ask(`${api.operatorsUrl}/admin/v1/rules`, admin)).json;
    const answer = await ask(`${api.operatorsUrl}/admin/v1/rules`, {
      method: 'PUT',
      ...admin,
      body: { version, rules },
    });
    expect(answer.status, answer.text).to.equal(200);
    const inForce = new RegExp(`^seckill_admission_rules_version\\S* ${String(answer.json.version)}$`, 'm');
    const metrics = async (): Promise<string> => (await ask(`${api.operatorsUrl}/metrics`)).text;
    await until('the rules are in force', async () => inForce.test(await metrics()));
  }

  it('stops a buyer who buys and cancels repeatedly, but no other buyer, and no buyer at all in a dry run', async () => {
    const { saleId } = await openSale(system.stack, { stock: 5 });
    const cycle = async (userId: string, key: string): Promise<Answer> => {
      const token = tokenOf(userId);
      const purchases = `${api.url}/v1/sales/${saleId}/purchases`;
      const headers = { 'Idempotency-Key': key };
      const isFree = async (): Promise<boolean> => {
        const bought = await ask(purchases, { method: 'POST', token, headers, body: { quantity: 1 } });
        return bought.status < 300; // units of the previous order are on their way back
      };
      await until(`${userId} buys`, isFree);
      const { json } = await ask(`${purchases}/${key}?wait=10`, { token, timeoutMs: 15_000 });
      return ask(`${api.url}/v1/orders/${String(json.orderId)}/cancel`, { method: 'POST', token });
    };
    const answersOf = async (userId: string, keys: readonly string[]): Promise<string[]> => {
      const answers: string[] = [];
      for (const key of keys) answers.push(brief(await cycle(userId, key)));
      return answers;
    };
    const done = '200 undefined';
    await publish({ orders: { mode: 'dry_run', sales: [saleId], cancelsMax: 1 } });
    expect(await answersOf('ann', ['k1', 'k2'])).to.deep.equal([done, done]);
    await publish({ orders: { mode: 'on', sales: [saleId], cancelsMax: 3 } });
    expect(await answersOf('ann', ['k3', 'k4'])).to.deep.equal([done, '409 cancel_limit_reached']);
    expect(await answersOf('bob', ['k1'])).to.deep.equal([done]);
    const again = {
      method: 'POST',
      token: tokenOf('ann'),
      headers: { 'Idempotency-Key': 'k5' },
      body: { quantity: 1 },
    } as const;
    const purchases = `${api.url}/v1/sales/${saleId}/purchases`;
    expect(brief(await ask(purchases, again)), 'that order stays').to.equal('409 limit_reached');
    const metrics = (await ask(`${api.operatorsUrl}/metrics`)).text;
    for (const mode of ['dry_run', 'on']) {
      expect(metrics).to.match(
        new RegExp(`refusals_total\\{.*word="cancel_limit_reached".*mode="${mode}".*\\} 1$`, 'm'),
      );
    }
    expect(await expectInvariants(system.stack, saleId)).to.include({ rows: 5, sold: 1 });
  });

  it('refuses an address more connections than its share', async () => {
    const port = Number(new URL(api.url).port);
    const sockets: Socket[] = [];
    const opened = async (localAddress: string): Promise<Socket> => {
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      socket.on('error', () => undefined); // a reset counts as an end
      sockets.push(socket);
      await once(socket, 'connect');
      return socket;
    };
    try {
      for (let nth = 0; nth < CONNECTIONS_MAX; nth++) await opened(CLIENT);
      const oneTooMany = await opened(CLIENT);
      if (!oneTooMany.closed) await once(oneTooMany, 'close');
      expect(sockets.filter(({ closed }) => closed)).to.have.length(1);
      const other = await opened('127.0.0.10');
      other.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(String((await once(other, 'data'))[0])).to.include('200 OK');
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });
});
