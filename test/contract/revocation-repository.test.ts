import { expect } from 'chai';
import { createRevocationRepository } from '../../src/mysql/revocation-repository.js';
import type { NewRevocation, RevocationRepository } from '../../src/core/ports/revocations.js';
import { ownMysqlWorld, type MysqlWorld } from './repository-worlds.js';

const DAY_MS = 86_400_000;
const ofUser: NewRevocation = { userId: 'auth0|507f', issuedBeforeMs: Date.UTC(2026, 0, 31, 20, 0, 0, 123) };
const ofToken: NewRevocation = { tokenId: "j'1/2{3}" };

describe('contract RevocationRepository on mysql', () => {
  let world: MysqlWorld;
  let repository: RevocationRepository;
  beforeEach(async () => {
    world = await ownMysqlWorld();
    repository = createRevocationRepository(world.pool);
  });
  afterEach(() => world?.close());

  it('returns revocations in order and newest first, with actor and time', async () => {
    const added = [await repository.add(ofUser, 'root'), await repository.add(ofToken, 'ann (deploy)')];
    expect(added[0]).to.deep.include({ ...ofUser, number: 1, actor: 'root' });
    expect(added[1]).to.deep.include({ ...ofToken, number: 2, actor: 'ann (deploy)' });
    expect(Math.abs((added[0]?.atMs ?? 0) - Date.now())).to.be.below(10_000);
    expect(await repository.after(0, DAY_MS, 10)).to.deep.equal(added);
    expect(await repository.after(1, DAY_MS, 10)).to.deep.equal(added.slice(1));
    expect(await repository.after(0, DAY_MS, 1)).to.deep.equal(added.slice(0, 1));
    expect(await repository.newest(10)).to.deep.equal(added.toReversed());
    expect(await repository.newest(10, 2)).to.deep.equal(added.slice(0, 1));
  });

  it('omits revocations whose tokens have all expired', async () => {
    await repository.add(ofUser, 'root');
    expect(await repository.after(0, -1000, 10)).to.deep.equal([]);
  });

  it('audits each revocation with its change', async () => {
    await repository.add(ofUser, 'root');
    expect(await world.auditOf('revocation:1')).to.deep.equal([
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
    const added = await Promise.all(Array.from({ length: 8 }, () => repository.add(ofToken, 'root')));
    expect(added.map(({ number }) => number)).to.have.members([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
