import { expect } from 'chai';
import type { CallName } from './call-name.js';
import { CALL_FAULTS, OTHER_FAULTS } from './engine/faults.js';
import { inSimulatedTime } from './engine/simulated-time.js';
import { hashOf, simulate, simulateSeeds } from './run.js';
import { listed, type Tally } from './tally.js';

/** After 1,500 all that must be reached was reached; `npm run simulate` makes any number of them. */
const RUNS = 2_000;

/** Port calls that a fault must have hit in these runs, or the runs prove nothing about them. */
const CALLS_HIT: readonly CallName[] = [
  'precheck',
  'sendHalf',
  'deduct',
  'resolve',
  'commit',
  'rollback',
  'findRequest',
  'acceptedBuyers',
  'readSale',
  'receive',
  'ack',
  'hold',
  'retryAfter',
  'termsOf',
  'write',
  'findByPurchases',
  'writtenBatches',
  'liveBuyers',
  'markRecorded',
  'withPending',
  'stalePending',
  'takeDue',
  'leaveAlone',
  'publish',
  'lease',
  'markDone',
  'postpone',
  'release',
  'expire',
  'expireDue',
  'pay',
  'cancel',
  'findOrder',
  'park',
  'acquire',
  'setState',
  'move',
  'reacquire',
  'statusOf',
  'statusOrFault',
  'lock',
  'raiseEpoch',
  'stage',
  'pendingBodies',
  'swap',
  'read',
  'transferOut',
  'transferIn',
  'endTransfer',
];

/** Events that must have happened at least once. */
const REACHED = [
  'batch: bucket_empty',
  'transferOut: transferred',
  'transferOut: empty',
  'transferOut: unavailable',
  'transferIn: received',
  'transferIn: already_received',
  'transferIn: unavailable',
  'endTransfer: ended',
  'endTransfer: already_ended',
  'reshard: resharded',
  'reshard: in_repair',
  'reshard: superseded',
  'snapshot: old',
  'batch: all_answered_by_precheck',
  'batch: accepted',
  'batch: refused',
  'batch: aborted',
  'batch: unavailable',
  'batch: outcome_unknown',
  'deduct: deducted',
  'deduct: refused',
  'deduct: aborted',
  'resolve: deducted',
  'resolve: aborted',
  'check-back: commit',
  'check-back: rollback',
  'check-back: no_answer',
  'answer: accepted',
  'answer: replayed',
  'answer: outcome_unknown',
  'answer: nothing',
  'answer: sold_out',
  'answer: limit_reached',
  'answer: overloaded',
  'answer: unavailable',
  'answer: closed',
  'answer: paused',
  'answer: request_conflict',
  'answer: loading',
  'redis: restarted whole',
  'redis: restarted tail',
  'redis: restarted empty',
  'repair: repaired',
  'repair: superseded',
  'repair: busy',
  'deduct: stale_epoch',
  'resolve: outlived',
  'delivery: refused',
  'delivery: recorded',
  'delivery: already_recorded',
  'delivery: not_marked',
  'retry: unavailable',
  'retry: contended',
  'retry: no_order_ids',
  'ack: too late',
  'outage: begun',
  'keeper: re-driven',
  'keeper: marked late',
  'keeper: released',
  'keeper: expired',
  'keeper: parked',
  'dead letter: replayed',
  'dead letter: already_recorded',
  'dead letter: discarded',
  'dead letter: unfinished',
  'dead letter: forged',
  'forged: unsigned',
  'forged: wrong_signature',
  'refund: refunded',
  'change found: notification',
  'finding: unreleased',
  'finding: stuck_outbox',
  'compensation: compensated',
  'compensation: failed_final',
  'order: paid',
  'order: cancelled',
  'order: expired',
  'order: failed',
  'order: pending_payment',
  'pay: paid',
  'pay: wrong_state',
  'pay: refund_due',
  'cancel: cancelled',
  'cancel: wrong_state',
  'status: pending',
  'status: ordered',
  'status: failed',
  'process: two keepers',
  'process: api died',
  'process: worker died',
  'process: keeper died',
  'process: operator died',
  'process: worker stopped',
];

describe('simulation of the programs on servers in memory', () => {
  it('the same seed gives the same run, call by call', async () => {
    const seeds = [1, 2, 3, 4711, 123_456_789];
    const traces = (): Promise<string[][]> =>
      inSimulatedTime(async () => {
        const all: string[][] = [];
        for (const seed of seeds) all.push([...(await simulate(seed, true)).lines]);
        return all;
      });
    const [first, again] = [await traces(), await traces()];
    expect(first.map(hashOf)).to.deep.equal(again.map(hashOf));
    expect(new Set(first.map(hashOf)).size, 'seeds differ').to.equal(seeds.length);
    expect(first.every((lines) => lines.length > 20)).to.equal(true);
  });

  it('a trace does not change the run', async () => {
    await inSimulatedTime(async () => {
      for (const seed of [11, 12, 13]) {
        const [plain, traced] = [await simulate(seed), await simulate(seed, true)];
        expect([...plain.world.counts]).to.deep.equal([...traced.world.counts]);
        expect(plain.world.scheduler.happened).to.equal(traced.world.scheduler.happened);
      }
    });
  });

  it(`I1 to I5 hold in ${RUNS} runs, and every fault happens among them [I1]`, async () => {
    const tally = await simulateSeeds(1, RUNS);
    await explain(tally);
    const { faults, hits, counts } = tally;
    const missing = (words: readonly string[], seen: Readonly<Record<string, number>>): string[] =>
      words.filter((word) => (seen[word] ?? 0) === 0);
    expect(missing([...CALL_FAULTS, ...OTHER_FAULTS], faults), 'faults that never happened').to.deep.equal([]);
    expect(missing(CALLS_HIT, hits), 'calls that no fault hit').to.deep.equal([]);
    expect(missing(REACHED, counts), 'events that never happened').to.deep.equal([]);
    console.log(`      · faults: ${listed(faults)}`);
    console.log(`      · ${tally.events} events in ${Math.round(tally.virtualMs / 3_600_000)} h of virtual time`);
  });
});

/** Fails with the trace of the first run that broke a promise. */
async function explain({ broken, brokenRuns }: Tally): Promise<void> {
  const [first] = broken;
  if (first === undefined) return;
  const { seed, code, what } = first;
  const { lines } = await inSimulatedTime(() => simulate(seed, true));
  console.log(lines.join('\n'));
  expect.fail(`${brokenRuns} runs broke a promise, the first with seed ${seed}: ${code} ${what}`);
}
