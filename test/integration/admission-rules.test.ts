import { expect } from 'chai';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Buyers, userIds } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { until } from '../chaos/harness/wait.js';
import { runCommand } from '../helpers/command.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';

describe('admission rules at two APIs', () => {
  let apis: [Program, Program];
  const system = useSystem(async ({ programs }) => {
    const [one, other] = await Promise.all([programs.start('api'), programs.start('api'), programs.start('worker')]);
    apis = [one, other];
  });
  afterEach(() => publish({})); // the stack outlives this file

  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [apis[0].url]);
  const admin = (): string => buyersOf('1').token('root', ['admin']);
  const brief = (answer: Answer | null): string => `${answer?.status} ${answer?.json.code ?? answer?.json.status}`;
  const versionIn = async ({ operatorsUrl }: Program): Promise<number> => {
    const { text } = await ask(`${operatorsUrl}/metrics`);
    return Number(/^seckill_admission_rules_version\S* (\d+)$/m.exec(text)?.[1]);
  };
  const inForce = (version: number): Promise<void> =>
    until(`version ${version} is in force in both`, async () =>
      (await Promise.all(apis.map(versionIn))).every((taken) => taken === version),
    );
  const newest = async (): Promise<number> =>
    Number((await ask(`${apis[0].operatorsUrl}/admin/v1/rules`, { token: admin() })).json.version);
  async function publish(rules: object): Promise<void> {
    const body = { version: await newest(), rules };
    const answer = await ask(`${apis[0].operatorsUrl}/admin/v1/rules`, { method: 'PUT', token: admin(), body });
    expect(answer.status, answer.text).to.equal(200);
    await inForce(Number(answer.json.version));
  }

  it('are reported and apply nowhere if no API can use them, and a starting API refuses requests [S11]', async () => {
    const { env, servers } = system.stack;
    const { saleId } = await openSale(system.stack, { stock: 5 });
    const buyers = buyersOf(saleId);
    const [ann = '', bob = ''] = userIds(2);
    const lists = { mode: 'on', users: { deny: [ann] } };
    await publish({ lists });
    const [good, file] = [await newest(), join(servers.dir, `unfit-${process.pid}.json`)];
    await writeFile(file, JSON.stringify({ version: good, rules: { lists, sign: { mode: 'on', keys: ['lost'] } } }));
    const set = await runCommand(['rules', 'set', file], env).finally(() => rm(file, { force: true }));
    expect(set.code, set.stdout).to.equal(1);
    for (const { pid } of apis) {
      expect(set.stderr).to.match(
        new RegExp(`pid ${pid}  follows version ${good}, and cannot use ${good + 1}: sign\\.keys`),
      );
    }
    for (const { url, operatorsUrl } of apis) {
      expect((await ask(`${url}/readyz`)).json, 'it keeps its last good rules').to.deep.equal({ ready: true });
      expect((await ask(`${operatorsUrl}/readyz`)).text).to.contain(`version ${good + 1} cannot be used here`);
      expect(brief(await buyers.buy(ann, { url }))).to.equal('403 denied');
    }

    const late = await system.programs.start('api');
    expect((await ask(`${late.url}/readyz`)).json).to.deep.equal({ ready: false });
    expect((await ask(`${late.operatorsUrl}/readyz`)).text).to.contain('no version is in force');
    for (const user of [ann, bob]) {
      expect(brief(await buyers.buy(user, { url: late.url }))).to.equal('503 unavailable');
    }
    const status = await runCommand(['rules', 'status', '--json'], env);
    expect(status.code, status.stderr).to.equal(1);
    const { inForce: where, apis: found } = JSON.parse(status.stdout) as {
      inForce: string;
      apis: { follows: boolean }[];
    };
    expect([where, found.map(({ follows }) => follows)]).to.deep.equal(['not_everywhere', [false, false, false]]);

    await publish({ lists });
    await until('it is ready', async () => (await ask(`${late.url}/readyz`)).status === 200);
    expect(brief(await buyers.buy(ann, { url: late.url }))).to.equal('403 denied');
    expect(brief(await buyers.buy(bob, { url: late.url }))).to.equal('202 pending');
    await late.stop();
    expect((await runCommand(['rules', 'status'], env)).stdout).to.match(/^Version \d+ is in force in all 2 apis\.$/m);
    expect(await expectInvariants(system.stack, saleId, buyers.opLog)).to.include({ sold: 1, unitsLeft: 4 });
  });

  it('refuse a denied caller, even an admin, at every API once `seckill rules set` has ended', async () => {
    const { env, servers } = system.stack;
    const [root = '', other = ''] = userIds(2);
    const { saleId } = await openSale(system.stack, { stock: 1 });
    const buyers = buyersOf(saleId);
    const answersOf = async (userId: string): Promise<string[]> => {
      const token = buyers.token(userId, ['admin']);
      const asked = apis.flatMap(({ url, operatorsUrl }) => [
        ask(`${url}/v1/me/orders`, { token }),
        ask(`${operatorsUrl}/admin/v1/audit?limit=1`, { token }),
      ]);
      return (await Promise.all(asked)).map(({ status, json }) => [status, json.code ?? ''].join(' ').trim());
    };
    expect(new Set(await answersOf(root))).to.deep.equal(new Set(['200']));
    const file = join(servers.dir, `deny-${process.pid}.json`);
    const rules = { lists: { mode: 'on', users: { deny: [root] } } };
    await writeFile(file, JSON.stringify({ version: await newest(), rules }));
    const set = await runCommand(['rules', 'set', file, '--wait', '30'], env).finally(() => rm(file, { force: true }));
    expect(set.code, set.stderr).to.equal(0);
    expect(new Set(await answersOf(root)), 'at once').to.deep.equal(new Set(['403 denied']));
    expect(new Set(await answersOf(other))).to.deep.equal(new Set(['200']));
    await publish({});
  });
});
