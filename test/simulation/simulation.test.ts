import { expect } from 'chai';
import type { Call } from './call-name.js';
import { CALL_FAULTS, OTHER_FAULTS } from './engine/faults.js';
import { inSimulatedTime } from './engine/simulated-time.js';
import { hashOf, simulate, simulateSeeds } from './run.js';
import { listed, type Tally } from './tally.js';

/** All that must be reached was reached after 1,500 runs; `npm run simulate` makes as many more as one likes. */
const RUNS = 5_000;
/** About 15 s on a core of its own; many times that on a machine that is shared. */
const TIMEOUT_MS = 480_000;

/** Port calls that a fault must have hit in so many runs, or nothing is said of them. */
const CALLS_HIT: readonly Call[] = [
  'precheck',
  'sendHalf',
  'deduct',
  'resolve',
  'commit',
  'rollback',
  'findRequest',
  'acceptedKeys',
  'readSale',
  'receive',
  'ack',
  'hold',
  'retryAfter',
  'termsOf',
  'write',
  'findByPurchases',
  'liveBuyers',
  'markRecorded',
  'withPending',
  'stalePending',
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

/** What the programs must have come to at least once. */
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
  'heard: accepted',
  'heard: replayed',
  'heard: outcome_unknown',
  'heard: nothing',
  'heard: sold_out',
  'heard: limit_reached',
  'heard: overloaded',
  'heard: unavailable',
  'heard: closed',
  'heard: paused',
  'heard: request_conflict',
  'heard: loading',
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
  'ack: loan ran out',
  'outage: begun',
  'keeper: re-driven',
  'keeper: marked late',
  'keeper: released',
  'keeper: expired',
  'keeper: parked',
  'letter: replayed',
  'letter: already_recorded',
  'letter: discarded',
  'letter: unfinished',
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

describe('simulation of the programs over servers in memory', () => {
  it('the same seed is the same run, to the last call', async () => {
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

  it('a run that is traced is the run that is not', async () => {
    await inSimulatedTime(async () => {
      for (const seed of [11, 12, 13]) {
        const [plain, traced] = [await simulate(seed), await simulate(seed, true)];
        expect([...plain.world.counts]).to.deep.equal([...traced.world.counts]);
        expect(plain.world.scheduler.happened).to.equal(traced.world.scheduler.happened);
      }
    });
  });

  it(`to I5 hold in ${RUNS} runs, and every fault was among them [I1]`, async function () {
    this.timeout(TIMEOUT_MS);
    const tally = await simulateSeeds(1, RUNS);
    await explain(tally);
    const { faults, hits, counts } = tally;
    const missing = (words: readonly string[], seen: Readonly<Record<string, number>>): string[] =>
      words.filter((word) => (seen[word] ?? 0) === 0);
    expect(missing([...CALL_FAULTS, ...OTHER_FAULTS], faults), 'faults that never bit').to.deep.equal([]);
    expect(missing(CALLS_HIT, hits), 'calls that no fault hit').to.deep.equal([]);
    expect(missing(REACHED, counts), 'ends that were never reached').to.deep.equal([]);
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
