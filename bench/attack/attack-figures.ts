import type { AttackResult, AttackTally } from './attack-process.js';
import { ATTACKS } from './attackers.js';
import type { LoadResult } from '../load/load.js';
import type { OpenLoopResult } from '../load/open-loop.js';

/** Figures of honest buyers and attackers on one sale, both together and separately. */
export interface BothLoads extends LoadResult {
  readonly honest: OpenLoopResult;
  readonly attack: AttackResult;
}

/** Purchases won per second of a load, from the first request to the last answer. */
function wonPerSecond({
  accepted,
  startedAtMs,
  endedAtMs,
}: Pick<LoadResult, 'accepted' | 'startedAtMs' | 'endedAtMs'>): number {
  return endedAtMs > startedAtMs ? (accepted * 1000) / (endedAtMs - startedAtMs) : 0;
}

const total = (attack: AttackResult, read: (tally: AttackTally) => number): number =>
  ATTACKS.reduce((sum, kind) => sum + read(attack.tallies[kind]), 0);

/** Answers 2xx: units that attackers have won. */
const wonBy = ({ byStatus }: AttackTally): number =>
  Object.entries(byStatus).reduce((sum, [status, count]) => sum + (Number(status) < 300 ? count : 0), 0);

/**
 * Both loads on one sale, as one load. The latency is that of honest buyers alone: attackers may wait, and their quick
 * refusals would improve the figure.
 */
export function loadOfBoth(honest: OpenLoopResult, attack: AttackResult): BothLoads {
  const [sent, answered] = [total(attack, (tally) => tally.sent), total(attack, (tally) => tally.answered)];
  return {
    sent: honest.sent + sent,
    answered: honest.answered + answered,
    // A replayed purchase that was accepted is not a second one, so only the flood brings new purchases.
    accepted: honest.accepted + wonBy(attack.tallies.flood),
    errors: honest.errors + sent - answered,
    startedAtMs: Math.min(honest.startedAtMs, attack.startedAtMs),
    endedAtMs: Math.max(honest.endedAtMs, attack.endedAtMs),
    latency: honest.latency,
    ranOutOfBuyers: honest.ranOutOfBuyers,
    cpuSeconds: honest.cpuSeconds + attack.cpuSeconds,
    honest,
    attack,
  };
}

/** Rows that `attack` adds to its column. Its goals are judged by these rows. */
export const HONEST_SHARE_ROW = 'honest: share of their rate without attack';
export const HONEST_UNITS_ROW = 'honest: share of their units without attack';
export const HONEST_P99_ROW = 'honest: p99 of winners, ms';
export const SLOW_LONGEST_ROW = 'slow headers: longest, ms';
export const SLOW_LIMIT_ROW = 'slow headers: may last, ms';

/** The api looks for slow clients twice a second, and on a busy machine both sides may be late. */
const SLOW_SLACK_MS = 1500;

/** Rows of the report that only this scenario has. */
export function attackFigures(
  { baseline, headersTimeoutMs }: { readonly baseline: OpenLoopResult; readonly headersTimeoutMs: number },
  { honest, attack }: Pick<BothLoads, 'honest' | 'attack'>,
): Record<string, number | string> {
  const [without, within] = [wonPerSecond(baseline), wonPerSecond(honest)];
  const sent = total(attack, (tally) => tally.sent);
  const { opened, closed, answered408, longestMs } = attack.slow;
  return {
    'honest: won/s without attack': without,
    'honest: won/s with it': within,
    [HONEST_SHARE_ROW]: without > 0 ? within / without : 0,
    [HONEST_UNITS_ROW]: honest.accepted / Math.max(1, baseline.accepted),
    'honest: p99 of winners without attack, ms': baseline.acceptedLatency.p99,
    [HONEST_P99_ROW]: honest.acceptedLatency.p99,
    'honest: p99 of the client itself, ms': honest.sendDelay.p99,
    'attack: share of all requests': sent / Math.max(1, sent + honest.sent),
    'attack: CPU µs of attackers, each': (attack.cpuSeconds * 1e6) / Math.max(1, sent),
    ...Object.fromEntries(ATTACKS.map((kind) => [`${kind}: answers`, answersOf(attack.tallies[kind])])),
    'flood: units won': wonBy(attack.tallies.flood),
    'slow headers: opened': opened,
    'slow headers: closed by the api': closed,
    'slow headers: answered 408': answered408,
    [SLOW_LONGEST_ROW]: longestMs,
    [SLOW_LIMIT_ROW]: headersTimeoutMs + SLOW_SLACK_MS,
  };
}

/** `429 × 3,812, 401 × 40`: the most frequent status first. */
function answersOf({ sent, byStatus }: AttackTally): string {
  if (sent === 0) return 'left out';
  return Object.entries(byStatus)
    .sort(([, one], [, other]) => other - one)
    .map(([status, count]) => `${status} × ${count.toLocaleString('en')}`)
    .join(', ');
}
