import { expect } from 'chai';
import { SEQUENCE_PER_MS } from '../../../src/core/order-id.js';
import { explainOrderId } from '../../helpers/explain-order-id.js';
import { createOrderIdMinter, type MintOutcome, type OrderIdMinter } from '../../../src/orders/order-id-minter.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import { silentLog } from '../../helpers/silent-log.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryWorkerSlots } from '../../helpers/memory/memory-worker-slots.js';

const LEASE_MS = 10_000;

describe('order-id-minter', () => {
  let clock: ManualClock;
  let slots: MemoryWorkerSlots;
  let minter: OrderIdMinter;

  const open = (owner: string): OrderIdMinter =>
    createOrderIdMinter({ slots, clock, log: silentLog }, { owner, leaseMs: LEASE_MS });
  const users = (count: number): string[] => Array.from({ length: count }, (_, i) => `u${i}`);
  const idsOf = (outcome: MintOutcome): readonly string[] => {
    if (outcome.outcome !== 'minted') throw new Error(outcome.reason);
    return outcome.orderIds;
  };
  const refusal = (outcome: MintOutcome): string => (outcome.outcome === 'refused' ? outcome.reason : outcome.outcome);

  /** Returns the clock of a machine that is behind by this time. */
  const behind = (ms: number): Clock => ({
    nowMs: () => clock.nowMs() - ms,
    monotonicMs: () => clock.monotonicMs(),
    sleep: (forMs) => clock.sleep(forMs),
  });

  beforeEach(async () => {
    clock = new ManualClock();
    slots = new MemoryWorkerSlots(clock);
    minter = open('ann');
    await minter.renew();
  });

  it('mints an id per user from time, slot, user and sequence', () => {
    const [first, second] = idsOf(minter.mint(['u1', 'u2'])).map(explainOrderId);
    expect(first).to.include({ atMs: clock.nowMs(), slot: 0, sequence: 0 });
    expect(second).to.include({ atMs: clock.nowMs(), slot: 0, sequence: 1 });
    expect(first?.userHash).not.to.equal(second?.userHash);
    expect(idsOf(minter.mint([]))).to.deep.equal([]);
  });

  it('mints 256 ids for a millisecond, then uses the next millisecond [D8]', () => {
    const seen = new Set<string>();
    const sameUser = Array.from({ length: 1000 }, () => 'u');
    for (let call = 0; call < 40; call++) {
      for (const id of idsOf(minter.mint(sameUser))) seen.add(id);
      clock.advance(3); // less than the 4 ms that a call uses up
    }
    expect(seen.size).to.equal(40_000);
    const perMs = new Map<number, number>();
    for (const id of seen) perMs.set(explainOrderId(id).atMs, (perMs.get(explainOrderId(id).atMs) ?? 0) + 1);
    expect(Math.max(...perMs.values())).to.equal(SEQUENCE_PER_MS);
  });

  it('refuses ids that would run ahead of its clock [D8]', () => {
    while (minter.mint(users(2560)).outcome === 'minted');
    const refused = minter.mint(users(1));
    expect(refusal(refused)).to.equal('clock_behind');
    clock.advance(refused.outcome === 'refused' ? refused.waitMs : 0);
    expect(refusal(minter.mint(users(1)))).to.equal('minted');
  });

  it('serves one call of any size', () => {
    expect(new Set(idsOf(minter.mint(users(32_000)))).size).to.equal(32_000);
  });

  it('repeats no id if the clock steps back a little [D8]', () => {
    const before = idsOf(minter.mint(users(300)));
    clock.step(-50);
    const after = idsOf(minter.mint(users(300)));
    expect(new Set([...before, ...after]).size).to.equal(600);
    expect(explainOrderId(after[0] as string).atMs).to.be.at.least(explainOrderId(before[299] as string).atMs);
  });

  it('mints no id until the clock has caught up after a large step back [D8]', () => {
    minter.mint(users(1));
    clock.step(-5000);
    expect(refusal(minter.mint(users(1)))).to.equal('clock_behind');
    clock.advance(4899);
    expect(refusal(minter.mint(users(1)))).to.equal('clock_behind');
    clock.advance(101);
    expect(refusal(minter.mint(users(1)))).to.equal('minted');
  });

  it('explains why it cannot mint [D8]', () => {
    expect(minter.problem()).to.equal(null);
    minter.mint(users(1));
    clock.step(-5000);
    expect(minter.problem()).to.match(/the clock was set back; no order id for another 4900 ms/);
    clock.advance(4900);
    expect(minter.problem()).to.equal(null);
    expect(open('new').problem()).to.match(/no order-id slot/);
  });

  it('moves to another slot if the clock steps back by half an hour [D8]', async () => {
    const before = idsOf(minter.mint(users(300)));
    clock.step(-1_800_000);
    expect(refusal(minter.mint(users(1)))).to.equal('clock_behind');
    await minter.renew(); // shares the call that the refusal has started
    const after = idsOf(minter.mint(users(300)));
    expect(explainOrderId(after[0] as string)).to.include({ slot: 1, atMs: clock.nowMs() });
    expect(new Set([...before, ...after]).size).to.equal(600);
    await minter.renew();
    expect(explainOrderId(idsOf(minter.mint(users(1)))[0] as string).slot, 'it is kept').to.equal(1);
  });

  it('mints at once when a clock that was an hour ahead is corrected [D8]', async () => {
    clock.step(3_600_000);
    await minter.renew();
    minter.mint(users(1));
    clock.step(-3_600_000);
    minter.mint(users(1));
    await minter.renew();
    expect(refusal(minter.mint(users(1)))).to.equal('minted');
  });

  it('never reuses a time that an earlier owner of its slot may have used [D8]', async () => {
    const bob = open('bob');
    await bob.renew();
    await bob.close(); // slot 1 is free from now on
    clock.advance(6_000);
    const late = createOrderIdMinter(
      { slots, clock: behind(30_000), log: silentLog },
      { owner: 'c', leaseMs: LEASE_MS },
    );
    await late.renew();
    expect(refusal(late.mint(users(1)))).to.equal('clock_behind');
    clock.advance(30_000);
    await late.renew();
    expect(explainOrderId(idsOf(late.mint(users(1)))[0] as string).slot).to.equal(1);
  });

  it('mints no id so old that a comparison of the sale could miss it [D8]', async () => {
    const late = createOrderIdMinter(
      { slots, clock: behind(3_600_001), log: silentLog },
      { owner: 'c', leaseMs: LEASE_MS },
    );
    await late.renew();
    expect(refusal(late.mint(users(1)))).to.equal('clock_behind');
  });

  it('ends its lease on time, whatever the clock does [D8]', () => {
    clock.advance(LEASE_MS - 50);
    clock.step(-60);
    clock.advance(50);
    expect(refusal(minter.mint(users(1)))).to.equal('no_lease');
  });

  it('mints nothing after its lease ended, until a renewal gives it a slot [D8]', async () => {
    clock.advance(LEASE_MS - 1);
    expect(refusal(minter.mint(users(1)))).to.equal('minted');
    clock.advance(1);
    expect(refusal(minter.mint(users(1)))).to.equal('no_lease');
    clock.advance(60_000);
    await open('bob').renew(); // takes the slot that ann has not renewed for a minute
    await minter.renew();
    expect(explainOrderId(idsOf(minter.mint(users(1)))[0] as string).slot).to.equal(1);
  });

  it('mints no id for a time beyond its lease [D8]', () => {
    clock.advance(LEASE_MS - 2);
    expect(refusal(minter.mint(users(SEQUENCE_PER_MS * 2)))).to.equal('minted');
    expect(refusal(minter.mint(users(1)))).to.equal('no_lease');
  });

  it('keeps minting after a failed renewal while the lease lasts', async () => {
    slots.broken = true;
    expect(await minter.renew().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(refusal(minter.mint(users(1)))).to.equal('minted');
  });

  it('mints nothing before the first lease or after close, and close never rejects', async () => {
    expect(refusal(open('new').mint(users(1)))).to.equal('no_lease');
    slots.broken = true;
    await minter.close();
    expect(refusal(minter.mint(users(1)))).to.equal('no_lease');
  });
});
