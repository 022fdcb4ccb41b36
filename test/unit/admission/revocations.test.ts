import { expect } from 'chai';
import { Revocations } from '../../../src/admission/revocations.js';
import { Bug, OperationalError } from '../../../src/core/errors.js';
import type { NewRevocation, Revocation, RevocationRepository } from '../../../src/core/ports/revocations.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { partial } from '../../helpers/partial.js';
import { silentLog } from '../../helpers/silent-log.js';

const LIFE_MS = 3_600_000;

describe('revocations', () => {
  let clock: ManualClock;
  let stored: Revocation[];
  /** Thrown by each read if set. */
  let fault: Error | null;
  let revocations: Revocations;
  const isRevoked = (
    userId: string,
    issuedAtMs: number | null = clock.nowMs(),
    tokenId: string | null = null,
  ): boolean => revocations.isRevoked({ userId, tokenId, issuedAtMs });

  beforeEach(() => {
    clock = new ManualClock();
    [stored, fault] = [[], null];
    const repository = partial<RevocationRepository>({
      after: async (number, lifeMs, max) => {
        if (fault !== null) throw fault;
        return stored.filter((one) => one.number > number && one.atMs > clock.nowMs() - lifeMs).slice(0, max);
      },
    });
    revocations = new Revocations({ repository, clock, log: silentLog, lifeMaxMs: LIFE_MS });
  });

  const add = (revocation: NewRevocation): void =>
    void stored.push({ ...revocation, number: stored.length + 1, actor: 'root', atMs: clock.nowMs() });

  it('refuse tokens of a user issued before the given time, or without an issue time', async () => {
    const atMs = clock.nowMs();
    add({ userId: 'ann', issuedBeforeMs: atMs });
    await revocations.start();
    expect([isRevoked('ann', atMs - 1), isRevoked('ann', null)]).to.deep.equal([true, true]);
    expect([isRevoked('ann', atMs), isRevoked('bob', atMs - 1)]).to.deep.equal([false, false]);
  });

  it('refuse a single token by its id, for any user', async () => {
    add({ tokenId: 't1' });
    await revocations.start();
    expect(isRevoked('ann', clock.nowMs(), 't1')).to.equal(true);
    expect([isRevoked('ann', clock.nowMs(), 't2'), isRevoked('ann')]).to.deep.equal([false, false]);
  });

  it('use the later of two times for a user, whichever was revoked first', async () => {
    const atMs = clock.nowMs();
    for (const issuedBeforeMs of [atMs, atMs - 5000]) add({ userId: 'ann', issuedBeforeMs });
    await revocations.start();
    expect(isRevoked('ann', atMs - 1)).to.equal(true);
  });

  it('load new revocations, even more than one page of them', async () => {
    await revocations.start();
    for (let nth = 0; nth < 2500; nth++) add({ tokenId: `t${nth}` });
    await revocations.runOnce();
    expect(['t0', 't1000', 't2499'].map((id) => isRevoked('ann', null, id))).to.deep.equal([true, true, true]);
  });

  it('keep the known revocations while MySQL is down, and load new ones afterwards', async () => {
    add({ tokenId: 't1' });
    await revocations.start();
    fault = new OperationalError('mysql', 'mysql is away', { retryable: true });
    await revocations.runOnce();
    expect(isRevoked('ann', null, 't1')).to.equal(true);
    fault = null;
    add({ tokenId: 't2' });
    await revocations.runOnce();
    expect(isRevoked('ann', null, 't2')).to.equal(true);
  });

  it('report a bug as a bug, not as an outage', async () => {
    await revocations.start();
    fault = new Bug('a row without a user');
    expect(await revocations.runOnce().catch(String)).to.equal('Bug: a row without a user');
  });

  it('drop a revocation once every affected token has expired', async () => {
    add({ tokenId: 't1' });
    await revocations.start();
    clock.advance(LIFE_MS);
    await revocations.runOnce();
    expect(isRevoked('ann', null, 't1'), 'a token may be good to the end of its life').to.equal(true);
    clock.advance(LIFE_MS);
    await revocations.runOnce();
    expect(isRevoked('ann', null, 't1')).to.equal(false);
  });
});
