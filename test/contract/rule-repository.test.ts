import { expect } from 'chai';
import { createAuditLog } from '../../src/mysql/audit-log.js';
import { createRuleRepository } from '../../src/mysql/rule-repository.js';
import type { AuditEntry } from '../../src/core/ports/audit-log.js';
import type { RuleRepository } from '../../src/core/ports/rules.js';
import { MemoryRuleRepository } from '../helpers/memory/memory-rule-repository.js';
import { ownMysqlWorld } from './repository-worlds.js';
import { onEachFreshWorld } from './on-each-world.js';

interface World {
  readonly store: RuleRepository;
  /** Versions, oldest first. */
  audited(): Promise<AuditEntry[]>;
  close(): Promise<void>;
}

async function memoryWorld(): Promise<World> {
  const store = new MemoryRuleRepository();
  return { store, audited: async () => store.audited, close: async () => undefined };
}

/** Own database, because APIs of other tests would use these rules. */
async function mysqlWorld(): Promise<World> {
  const { pool, close } = await ownMysqlWorld();
  return {
    store: createRuleRepository(pool),
    async audited() {
      const entries = await createAuditLog(pool).list({ subject: 'rules:admission' }, { max: 100 });
      return entries
        .toReversed()
        .map(({ actor, action, subject, before, after }) => ({ actor, action, subject, before, after }));
    },
    close,
  };
}

const WORLDS = [
  ['memory', memoryWorld],
  ['mysql', mysqlWorld],
] as const;

const denying = (...deny: string[]): object => ({ lists: { mode: 'on', users: { deny } } });

onEachFreshWorld<World>('contract RuleRepository', WORLDS, (world) => {
  it('returns version 0 and no rules before any are stored', async () => {
    expect(await world.store.current()).to.deep.equal({ version: 0, rules: {}, canary: null });
    expect(await world.store.find(0)).to.equal(null);
    expect(await world.store.history(10)).to.deep.equal([]);
  });

  it('keeps every version unchanged, with its author', async () => {
    const startMs = Date.now() - 60_000;
    const texts = denying('Ünïcode 🎉', "' OR 1=1 --", '\\"');
    expect(await world.store.store(texts, 0, 'ann')).to.deep.equal({ outcome: 'stored', version: 1 });
    expect(await world.store.store({}, 1, 'bob')).to.deep.equal({ outcome: 'stored', version: 2 });
    expect(await world.store.current()).to.deep.equal({ version: 2, rules: {}, canary: null });
    expect(await world.store.find(1)).to.deep.equal({ version: 1, rules: texts });
    expect(await world.store.find(3)).to.equal(null);
    const history = await world.store.history(10);
    expect(history.map(({ version, actor }) => `${version} ${actor}`)).to.deep.equal(['2 bob', '1 ann']);
    for (const { atMs } of history) expect(atMs).to.be.within(startMs, Date.now() + 60_000);
    expect(await world.store.history(1)).to.deep.equal(history.slice(0, 1));
  });

  it('stores nothing if a change is based on an older version, and returns the newest version', async () => {
    await world.store.store({}, 0, 'ann');
    await world.store.store({}, 1, 'ann');
    for (const known of [0, 1, 3, 7]) {
      const conflict = { outcome: 'version_conflict', version: 2 };
      expect(await world.store.store(denying('eve'), known, 'bob'), `from ${known}`).to.deep.equal(conflict);
    }
    expect(await world.store.current()).to.deep.equal({ version: 2, rules: {}, canary: null });
  });

  it('lets one of many concurrent changes win, and returns the newest version to the others', async () => {
    for (const known of [0, 1]) {
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, index) => world.store.store(denying(`u${index}`), known, `a${index}`)),
      );
      expect(answers.filter(({ outcome }) => outcome === 'stored')).to.have.length(1);
      expect(new Set(answers.map(({ version }) => version))).to.deep.equal(new Set([known + 1]));
    }
    expect(await world.store.history(10)).to.have.length(2);
    expect(await world.audited(), 'the others are not in the audit log').to.have.length(2);
  });

  it('audits the author, the changed layers and both versions', async () => {
    await world.store.store(denying('eve'), 0, 'ann');
    await world.store.store({ ...denying('eve'), other: { mode: 'off' } }, 1, 'bob');
    await world.store.store(denying('eve'), 9, 'eve');
    const shared = { action: 'rules.published', subject: 'rules:admission' };
    expect(await world.audited()).to.deep.equal([
      { actor: 'ann', ...shared, before: { version: 0 }, after: { version: 1, changed: ['lists'] } },
      { actor: 'bob', ...shared, before: { version: 1 }, after: { version: 2, changed: ['other'] } },
    ]);
  });

  it('keeps a canary beside the rules of its version', async () => {
    const canary = { percent: 1, rules: denying('bob') };
    await world.store.store(denying('eve'), 0, 'ann', { canary });
    expect(await world.store.current()).to.deep.equal({ version: 1, rules: denying('eve'), canary });
    expect(await world.store.find(1)).to.deep.equal({ version: 1, rules: denying('eve') });
    await world.store.store(denying('eve'), 1, 'ann');
    expect(await world.store.current()).to.deep.equal({ version: 2, rules: denying('eve'), canary: null });
  });

  it('audits a canary with the counts of the keeper, and returns the age of a version', async () => {
    const more = { since: 1, why: 'refused_more', tried: { accepted: 140, refused: 60 } };
    await world.store.store(denying('eve'), 0, 'keeper', { action: 'rules.canary_rolled_back', more });
    expect(await world.audited()).to.deep.equal([
      {
        ...{ actor: 'keeper', action: 'rules.canary_rolled_back', subject: 'rules:admission' },
        ...{ before: { version: 0 }, after: { version: 1, changed: ['lists'], ...more } },
      },
    ]);
    expect(await world.store.ageMs(1)).to.be.within(0, 60_000);
    expect(await world.store.ageMs(2)).to.equal(null);
  });

  it('accepts rules of the maximum size', async () => {
    const large = denying(...Array.from({ length: 20_000 }, (_, index) => `${'x'.repeat(50)}${index}`));
    await world.store.store(large, 0, 'ann');
    expect((await world.store.current()).rules).to.deep.equal(large);
  });
});
