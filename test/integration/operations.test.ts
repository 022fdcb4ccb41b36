import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import { runCommand } from '../helpers/command.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

describe('endpoints and commands for operators', () => {
  let all: Program[];
  const system = useSystem(async ({ programs }) => {
    const env = { MYSQL_QUERY_TIMEOUT_MS: '1000', REDIS_REPLY_TIMEOUT_MS: '500' };
    all = await Promise.all((['api', 'worker', 'keeper'] as const).map((name) => programs.start(name, { env })));
  });

  const readiness = async ({ operatorsUrl }: Program): Promise<{ status: number; bad: string[] }> => {
    const { status, json } = await ask(`${operatorsUrl}/readyz`);
    const dependencies = json.dependencies as { name: string; ok: boolean }[];
    return { status, bad: dependencies.filter(({ ok }) => !ok).map(({ name }) => name) };
  };

  it('names no server or address in any answer to buyers, even during an outage', async () => {
    const [api] = all as [Program];
    const { MYSQL_URL, REDIS_URL, ROCKETMQ_ENDPOINT } = system.stack.env;
    const ports = [new URL(MYSQL_URL).port, new URL(REDIS_URL).port, ROCKETMQ_ENDPOINT.split(':')[1] as string];
    const buyers = new Buyers('1', system.stack.env.JWT_SECRET, () => [api.url]);
    const answers = (): Promise<Answer[]> =>
      Promise.all(
        [
          '/healthz',
          '/readyz',
          '/v1/sales/1',
          '/v1/me/orders',
          '/v1/orders/1',
          '/metrics',
          '/openapi/operators.json',
        ].map((path) => ask(api.url + path, { token: buyers.token('ann', ['admin']) })),
      );
    const expectNothing = (given: readonly Answer[]): void => {
      for (const { text } of given) {
        expect(text).not.to.match(/127\.0\.0\.1|localhost|ECONN/);
        for (const port of ports) expect(text).not.to.match(new RegExp(`\\b${port}\\b`)); // ids may contain the digits
      }
    };
    expectNothing(await answers());
    const { servers } = system.stack;
    expect(servers.server('mysql').kill('SIGSTOP'), 'it was stopped').to.equal(true);
    try {
      await until('operators hear that MySQL is away', async () => (await readiness(api)).status === 503);
      const sells = async (): Promise<boolean> => (await ask(`${api.url}/readyz`)).json.ready === true;
      await until('it sells without it', sells); // a busy Redis may be late for a moment
      expectNothing(await answers());
    } finally {
      servers.server('mysql').kill('SIGCONT');
    }
    for (const program of all) await until('ready again', async () => (await readiness(program)).status === 200);
  });

  for (const dependency of ['redis', 'mysql'] as const) {
    it(`names ${dependency} in /readyz while it is stopped, keeps /healthz alive, and recovers`, async () => {
      const { servers } = system.stack;
      expect(servers.server(dependency).kill('SIGSTOP'), 'it was stopped').to.equal(true);
      try {
        // Until each thread of the server has stopped, an answer may arrive.
        const named = all.map(() => ({ status: 503, bad: [dependency] }));
        await until('all say so', async () => isDeepStrictEqual(await Promise.all(all.map(readiness)), named));
        for (const { operatorsUrl } of all) expect((await ask(`${operatorsUrl}/healthz`)).status).to.equal(200);
        const forBuyers = async (): Promise<unknown> => (await ask(`${(all[0] as Program).url}/readyz`)).json;
        const expected = { ready: dependency === 'mysql' };
        await until('buyers are sent elsewhere only without Redis', async () =>
          isDeepStrictEqual(await forBuyers(), expected),
        );
      } finally {
        servers.server(dependency).kill('SIGCONT');
      }
      for (const program of all) {
        await until(`the ${program.name} is ready again`, async () => (await readiness(program)).status === 200);
      }
    });
  }

  it('saves one profile at a time with `seckill profile api` and audits it', async () => {
    const [api] = all as [Program];
    const folder = mkdtempSync(join(tmpdir(), 'profiles-'));
    const profile = (file: string, ...args: readonly string[]) =>
      runCommand(
        ['profile', 'api', '--seconds', '2', '--url', api.operatorsUrl, '--out', join(folder, file), ...args],
        system.stack.env,
      );
    const saved = (file: string): object => JSON.parse(readFileSync(join(folder, file), 'utf8')) as object;
    try {
      const ends = await Promise.all([profile('a.cpuprofile'), profile('b.cpuprofile')]);
      const done = ends.filter(({ code }) => code === 0);
      // both end if the second started after the first had ended
      expect(done.length, JSON.stringify(ends)).to.be.within(1, 2);
      for (const { code, stderr } of ends) if (code !== 0) expect([code, stderr]).to.deep.equal([1, RUNNING]);
      expect(saved(ends[0]?.code === 0 ? 'a.cpuprofile' : 'b.cpuprofile')).to.include.keys('nodes', 'samples');
      expect((await profile('c.heapprofile', '--heap')).code).to.equal(0);
      expect(saved('c.heapprofile')).to.have.nested.property('head.callFrame');
      const { lines } = await runCommand(['audit', 'list', '--action', 'api.profiled', '--json'], system.stack.env);
      expect(lines.length).to.be.at.least(3);
      expect(lines[0]).to.deep.include({ actor: 'seckill-profile', subject: 'program:api' });
      const viewer = new Buyers('1', system.stack.env.JWT_SECRET, () => [api.url]).token('ann', ['operator']);
      const refused = await profile('d.cpuprofile', '--token', viewer);
      expect(refused.code).to.equal(1);
      expect(refused.stderr).to.match(/the api answers 403: .*admin/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("purges old records, and erases a buyer once the buyer's sale has left Redis", async () => {
    const [api] = all as [Program];
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 10 });
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    const userId = `erased-${saleId}`;
    await buyers.buy(userId);
    const { orderId } = (await buyers.status(userId, 'k1', 20)).json;
    const refused = await runCommand(['erase-buyer', userId], stack.env);
    expect([refused.code, refused.stdout]).to.deep.equal([1, '']);
    expect(refused.stderr).to.include(`sale ${saleId} is not retired`).and.to.include(`order ${orderId} is unpaid`);
    await buyers.move('cancel', userId, String(orderId));
    await expectInvariants(stack, saleId);
    await stack.mysql.execute("UPDATE sales SET state = 'closed', retirement = 'done' WHERE id = ?", [saleId]);
    const dry = await runCommand(['erase-buyer', userId, '--dry-run', '--json'], stack.env);
    expect([dry.code, dry.lines[0]?.outcome]).to.deep.equal([0, 'erased']);
    const erased = await runCommand(['erase-buyer', userId], stack.env);
    expect([erased.code, erased.stderr.includes('Kept:')]).to.deep.equal([0, true]);
    const sql = 'SELECT user_id AS user FROM orders WHERE id = CAST(? AS UNSIGNED)';
    const [row] = await stack.mysql.query<{ user: string }>(sql, [String(orderId)]);
    expect(row?.user).to.match(/^erased-[\w-]{16}$/);

    const purged = await runCommand(['purge', '--older-than', '400d', '--only', 'audit,archive', '--json'], stack.env);
    expect([purged.code, ...purged.lines.map(({ what }) => what)]).to.deep.equal([0, 'archive', 'audit']);
    for (const age of ['1d', 'x', '2999-01-01T00:00:00Z']) {
      expect((await runCommand(['purge', '--older-than', age], stack.env)).code, age).to.equal(2);
    }
    expect((await runCommand(['purge', '--older-than', '9d', '--only', 'all'], stack.env)).code).to.equal(2);
  });
});

/** Output of the command while another profile is running. */
const RUNNING = 'seckill: the api answers 409: This api is already recording a profile.\n';
