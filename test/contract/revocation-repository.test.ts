import { expect } from 'chai';
import { createAuditLog } from '../../src/mysql/audit-log.js';
import { createRevocationRepository } from '../../src/mysql/revocation-repository.js';
import type { AuditEntry } from '../../src/core/ports/audit-log.js';
import type { NewRevocation, RevocationRepository } from '../../src/core/ports/revocations.js';
import { MemoryRevocationRepository } from '../helpers/memory/memory-revocation-repository.js';
import { ownMysqlWorld } from './repository-worlds.js';
import { onEachFreshWorld } from './on-each-world.js';

interface World {
  readonly repository: RevocationRepository;
  /** Audit log of the first revocation. */
  audited(): Promise<AuditEntry[]>;
  close(): Promise<void>;
}

async function memoryWorld(): Promise<World> {
  const repository = new MemoryRevocationRepository();
  return { repository, audited: async () => repository.audited.slice(0, 1), close: async () => undefined };
}

async function mysqlWorld(): Promise<World> {
  const { pool, close } = await ownMysqlWorld();
  return {
    repository: createRevocationRepository(pool),
    async audited() {
      const entries = await createAuditLog(pool).list({ subject: 'revocation:1' }, { max: 10 });
      return entries.map(({ actor, action, subject, before, after }) => ({ actor, action, subject, before, after }));
    },
    close,
  };
}

const WORLDS = [
  ['memory', memoryWorld],
  ['mysql', mysqlWorld],
] as const;

const DAY_MS = 86_400_000;
const ofUser: NewRevocation = { userId: 'auth0|507f', issuedBeforeMs: Date.UTC(2026, 0, 31, 20, 0, 0, 123) };
const ofToken: NewRevocation = { tokenId: "j'1/2{3}" };

onEachFreshWorld<World>('contract RevocationRepository', WORLDS, (world) => {
  it('returns revocations in order and newest first, with actor and time', async () => {
    const added = [await world.repository.add(ofUser, 'root'), await world.repository.add(ofToken, 'ann (deploy)')];
    expect(added[0]).to.deep.include({ ...ofUser, number: 1, actor: 'root' });
    expect(added[1]).to.deep.include({ ...ofToken, number: 2, actor: 'ann (deploy)' });
    expect(Math.abs((added[0]?.atMs ?? 0) - Date.now())).to.be.below(10_000);
    expect(await world.repository.after(0, DAY_MS, 10)).to.deep.equal(added);
    expect(await world.repository.after(1, DAY_MS, 10)).to.deep.equal(added.slice(1));
    expect(await world.repository.after(0, DAY_MS, 1)).to.deep.equal(added.slice(0, 1));
    expect(await world.repository.newest(10)).to.deep.equal(added.toReversed());
    expect(await world.repository.newest(10, 2)).to.deep.equal(added.slice(0, 1));
  });

  it('omits revocations whose tokens have all expired', async () => {
    await world.repository.add(ofUser, 'root');
    expect(await world.repository.after(0, -1000, 10)).to.deep.equal([]);
  });

  it('audits each revocation with its change', async () => {
    await world.repository.add(ofUser, 'root');
    expect(await world.audited()).to.deep.equal([
      {
        actor: 'root',
        action: 'tokens.revoked',
        subject: 'revocation:1',
        before: null,
        after: { userId: 'auth0|507f', issuedBefore: '2026-01-31T20:00:00.123Z' },
      },
    ]);
  });

  it('numbers concurrent revocations uniquely and without gaps', async () => {
    const added = await Promise.all(Array.from({ length: 8 }, () => world.repository.add(ofToken, 'root')));
    expect(added.map(({ number }) => number)).to.have.members([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
