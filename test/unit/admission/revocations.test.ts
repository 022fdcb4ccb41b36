import { expect } from 'chai';
import { Revocations } from '../../../src/admission/revocations.js';
import { Bug } from '../../../src/core/errors.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRevocationRepository } from '../../helpers/memory/memory-revocation-repository.js';
import { silentLog } from '../../helpers/silent-log.js';

const LIFE_MS = 3_600_000;

describe('revocations', () => {
  let clock: ManualClock;
  let repository: MemoryRevocationRepository;
  let revocations: Revocations;
  const isRevoked = (
    userId: string,
    issuedAtMs: number | null = clock.nowMs(),
    tokenId: string | null = null,
  ): boolean => revocations.isRevoked({ userId, tokenId, issuedAtMs });

  beforeEach(() => {
    clock = new ManualClock();
    repository = new MemoryRevocationRepository(() => clock.nowMs());
    revocations = new Revocations({ repository, clock, log: silentLog, lifeMaxMs: LIFE_MS });
  });

  it('refuse tokens of a user that were issued before the given time or have no issue time', async () => {
    const atMs = clock.nowMs();
    await repository.add({ userId: 'ann', issuedBeforeMs: atMs }, 'root');
    await revocations.start();
    expect([isRevoked('ann', atMs - 1), isRevoked('ann', null)]).to.deep.equal([true, true]);
    expect([isRevoked('ann', atMs), isRevoked('bob', atMs - 1)]).to.deep.equal([false, false]);
  });

  it('refuse a single token by its id, for any user', async () => {
    await repository.add({ tokenId: 't1' }, 'root');
    await revocations.start();
    expect(isRevoked('ann', clock.nowMs(), 't1')).to.equal(true);
    expect([isRevoked('ann', clock.nowMs(), 't2'), isRevoked('ann')]).to.deep.equal([false, false]);
  });

  it('use the later of two times for a user, whichever was revoked first', async () => {
    const atMs = clock.nowMs();
    for (const issuedBeforeMs of [atMs, atMs - 5000]) await repository.add({ userId: 'ann', issuedBeforeMs }, 'root');
    await revocations.start();
    expect(isRevoked('ann', atMs - 1)).to.equal(true);
  });

  it('load new revocations, even more than one page of them', async () => {
    await revocations.start();
    for (let nth = 0; nth < 2500; nth++) await repository.add({ tokenId: `t${nth}` }, 'root');
    await revocations.runOnce();
    expect(['t0', 't1000', 't2499'].map((id) => isRevoked('ann', null, id))).to.deep.equal([true, true, true]);
  });

  it('keep the known revocations while MySQL is down, and load new ones afterwards', async () => {
    await repository.add({ tokenId: 't1' }, 'root');
    await revocations.start();
    repository.down = true;
    await revocations.runOnce();
    expect(isRevoked('ann', null, 't1')).to.equal(true);
    repository.down = false;
    await repository.add({ tokenId: 't2' }, 'root');
    await revocations.runOnce();
    expect(isRevoked('ann', null, 't2')).to.equal(true);
  });

  it('report a bug as a bug, not as an outage', async () => {
    await revocations.start();
    repository.after = () => Promise.reject(new Bug('a row without a user'));
    expect(await revocations.runOnce().catch(String)).to.equal('Bug: a row without a user');
  });

  it('drop a revocation once every affected token has expired', async () => {
    await repository.add({ tokenId: 't1' }, 'root');
    await revocations.start();
    clock.advance(LIFE_MS);
    await revocations.runOnce();
    expect(isRevoked('ann', null, 't1'), 'a token may be good to the end of its life').to.equal(true);
    clock.advance(LIFE_MS);
    await revocations.runOnce();
    expect(isRevoked('ann', null, 't1')).to.equal(false);
  });
});
