import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { judges } from '../../src/admission/rules/canary.js';
import { Buyers, outcomeOf } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { runCommand, type CommandEnd } from '../helpers/command.js';
import { useSystem } from '../helpers/system.js';

interface Status {
  readonly version: number;
  readonly canary: { readonly tried: { readonly accepted: number; readonly refused: number } } | null;
}

describe('a canary of rules at two APIs', () => {
  let apis: Program[];
  const system = useSystem(async ({ programs }) => {
    apis = await Promise.all([programs.start('api'), programs.start('api')]);
    await programs.start('keeper');
  });
  afterEach(async () => {
    await seckill('rollback', '--wait', '0'); // the stack outlives this file
    await set({});
  });

  const seckill = (...args: string[]): Promise<CommandEnd> => runCommand(['rules', ...args], system.stack.env);

  const token = (userId: string, roles: string[] = []): string =>
    new Buyers('1', system.stack.env.JWT_SECRET, () => []).token(userId, roles);
  const status = async (): Promise<Status> => {
    const url = `${apis[0]?.operatorsUrl}/admin/v1/rules/status`;
    return (await ask(url, { token: token('root', ['viewer']) })).json as unknown as Status;
  };
  const shown = async (): Promise<Record<string, never>> => JSON.parse((await seckill('show', '--json')).stdout).rules;
  const audited = async (): Promise<{ action: string; actor: string; after: Record<string, unknown> }> => {
    const url = `${apis[0]?.operatorsUrl}/admin/v1/audit?limit=1&subject=rules:admission`;
    return ((await ask(url, { token: token('root', ['viewer']) })).json.entries as never[])[0] as never;
  };
  async function withFile(command: 'set' | 'diff', document: object, ...flags: string[]): Promise<CommandEnd> {
    const file = join(system.stack.servers.dir, `canary-${randomUUID()}.json`);
    await writeFile(file, JSON.stringify(document));
    return seckill(command, file, ...flags).finally(() => rm(file));
  }
  const set = async (rules: object, ...flags: string[]): Promise<CommandEnd> =>
    withFile('set', { version: (await status()).version, rules }, '--wait', '30', ...flags);
  const diff = (rules: object): Promise<CommandEnd> => withFile('diff', { rules });

  /** Buys as each user. @returns the users whom admission refused */
  async function buy(saleId: string, users: readonly string[]): Promise<string[]> {
    const buyers = new Buyers(saleId, system.stack.env.JWT_SECRET, () => apis.map(({ url }) => url));
    const outcomes = (await buyers.rush(users, 32)).map(outcomeOf);
    expect(outcomes.filter((outcome) => outcome !== 'accepted' && outcome !== 'degraded')).to.deep.equal([]);
    return users.filter((_, index) => outcomes[index] === 'degraded');
  }

  it('rolls itself back, unnoticed by other users, when its rules refuse 30 % of purchases', async () => {
    const { saleId } = await openSale(system.stack, { stock: 1000 });
    expect((await set({ degrade: { mode: 'on' } })).code).to.equal(0);
    const since = (await status()).version + 1;
    const bad = { degrade: { mode: 'on', switches: { purchase: { level: 'L4', percent: 30 } } } };
    const started = await set(bad, '--canary', '1%', '--minutes', '10', '--max-refused', '+5%');
    expect([started.code, started.stdout]).to.deep.include.members([0]);
    expect(started.stdout).to.contain('1 % of the users try these rules for 10 min.');
    const second = await set(bad);
    expect(second.code).to.equal(1);
    expect(second.stderr).to.contain('`seckill rules promote` or `seckill rules rollback`');

    const users = Array.from({ length: 30_000 }, () => randomUUID());
    const tried = users.filter((userId) => judges({ since, percent: 1 }, userId));
    const others = users.filter((userId) => !judges({ since, percent: 1 }, userId)).slice(0, 300);
    expect(await buy(saleId, others), 'others').to.deep.equal([]);
    expect((await buy(saleId, tried)).length / tried.length, 'share of its users').to.be.within(0.15, 0.45);
    await until('it is rolled back', async () => (await status()).canary === null);
    expect(await audited()).to.deep.include({ actor: 'keeper', action: 'rules.canary_rolled_back' });
    expect((await audited()).after).to.include({ why: 'refused_more' });
    expect(await shown()).to.have.nested.property('degrade.switches.purchase.level', 'L0');
    await until('nobody is refused', async () => (await buy(saleId, tried)).length === 0);
  });

  it('is ended by an operator over HTTP or by command, and `rules diff` shows the changes', async () => {
    const denying = (...deny: string[]) => ({ lists: { mode: 'on', users: { deny } } });
    expect((await set(denying('eve'))).code).to.equal(0);
    const changed = await diff(denying('eve', 'bob'));
    expect([changed.code, changed.stdout.trim()]).to.deep.equal([1, 'lists.users.deny: with ["bob"]']);

    const canary = { percent: 1, minutes: 10, maxRefusedPercent: 5 };
    const url = `${apis[0]?.operatorsUrl}/admin/v1/rules`;
    const admin = token('root', ['admin']);
    const publish = async () =>
      ask(url, {
        ...{ method: 'PUT', token: admin },
        body: { version: (await status()).version, rules: denying('eve', 'bob'), canary },
      });
    expect((await publish()).status).to.equal(200);
    const during = await diff(denying('eve'));
    expect(during.code, 'the same rules, but a canary runs').to.equal(1);
    expect(during.stderr).to.contain('A canary of rules is running.');
    expect(await publish())
      .to.deep.include({ status: 409 })
      .and.have.nested.property('json.code', 'wrong_state');
    const rollback = { method: 'POST', token: admin, body: { action: 'rollback' } } as const;
    expect((await ask(`${url}/canary`, rollback)).status).to.equal(200);
    expect((await ask(`${url}/canary`, rollback)).status, 'no canary').to.equal(409);
    expect(await shown())
      .to.have.nested.property('lists.users.deny')
      .that.deep.equals(['eve']);

    expect((await publish()).status).to.equal(200);
    expect((await seckill('promote', '--wait', '30')).code).to.equal(0);
    expect((await diff(denying('eve', 'bob'))).code).to.equal(0);
    expect((await seckill('rollback')).code, 'no canary').to.equal(1);
  });
});
