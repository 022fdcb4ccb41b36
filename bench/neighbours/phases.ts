import { OUTCOME_CODE } from '../load/open-loop.js';
import { dueAtMs } from '../load/request-sender.js';
import type { ManySalesResult } from './many-sales-load.js';

/** A stretch of the load, Unix ms. */
export interface Stretch {
  readonly name: 'before' | 'during' | 'after';
  readonly fromMs: number;
  readonly toMs: number;
}

/** Orders of the neighbours that are committed, at some moments. */
export type SoldSamples = readonly { readonly atMs: number; readonly sold: number }[];

/** How the neighbours sold in one stretch. Latency is that of all answers, from when a request was due. */
export interface Phase {
  readonly name: Stretch['name'];
  readonly seconds: number;
  /** Purchases accepted per second. */
  readonly perSecond: number;
  /** Orders committed per second. */
  readonly landedPerSecond: number;
  /** Requests that were not accepted. */
  readonly refused: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** What the client itself added, ms. */
  readonly clientP99: number;
}

/**
 * @param isNeighbour whether the sale that the request goes to is one of those that are measured, by its index
 */
export function phasesOf(
  load: ManySalesResult,
  { rate, sales }: { readonly rate: number; readonly sales: number },
  isNeighbour: (sale: number) => boolean,
  stretches: readonly Stretch[],
  sold: SoldSamples,
): Phase[] {
  const latencies = floatsIn(load.latencies);
  const delays = floatsIn(load.sendDelays);
  const outcomes = Buffer.from(load.outcomes, 'base64');
  return stretches.map(({ name, fromMs, toMs }) => {
    const [own, client]: [number[], number[]] = [[], []];
    let [accepted, refused] = [0, 0];
    for (let place = 0; place < load.sent; place++) {
      if (!isNeighbour(place % sales)) continue;
      const dueMs = load.startedAtMs + dueAtMs(place, rate);
      const latency = latencies[place] ?? NaN;
      const answeredMs = dueMs + latency;
      const isAccepted = outcomes[place] === OUTCOME_CODE.ok;
      if (isAccepted && answeredMs >= fromMs && answeredMs < toMs) accepted++;
      if (dueMs < fromMs || dueMs >= toMs) continue;
      if (!isAccepted) refused++;
      own.push(Number.isNaN(latency) ? Infinity : latency);
      client.push(delays[place] ?? 0);
    }
    const seconds = (toMs - fromMs) / 1000;
    return {
      name,
      seconds,
      perSecond: accepted / seconds,
      landedPerSecond: (soldAt(sold, toMs) - soldAt(sold, fromMs)) / seconds,
      refused,
      p50: percentile(own, 0.5),
      p99: percentile(own, 0.99),
      max: percentile(own, 1),
      clientP99: percentile(client, 0.99),
    };
  });
}

function floatsIn(base64: string): Float32Array {
  const bytes = Buffer.from(base64, 'base64');
  const copy = new Uint8Array(bytes); // at an offset that a float may have
  return new Float32Array(copy.buffer, 0, copy.byteLength / Float32Array.BYTES_PER_ELEMENT);
}

/** The value below which so large a share lies; 0 of none. */
function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

/** Between two samples it is taken for even. */
function soldAt(samples: SoldSamples, atMs: number): number {
  const after = samples.findIndex((sample) => sample.atMs >= atMs);
  const [earlier, later] = [samples[after === -1 ? samples.length - 1 : after - 1], samples[after]];
  if (earlier === undefined) return later?.sold ?? 0;
  if (later === undefined) return earlier.sold;
  return earlier.sold + ((later.sold - earlier.sold) * (atMs - earlier.atMs)) / Math.max(1, later.atMs - earlier.atMs);
}

/** What one sale, or one server, did to the others. */
export interface Case {
  readonly title: string;
  readonly about: string;
  readonly phases: readonly Phase[];
  /** Why its check failed; empty when all sales passed. */
  readonly problems: readonly string[];
}

export interface NeighboursFigures {
  readonly kind: 'neighbours';
  readonly scenario: 'neighbours';
  readonly cases: readonly Case[];
}

/** Rate and p99 of the neighbours while something happens, as a share of those before. */
export function sharesOf({ phases }: Case): { readonly rate: number; readonly landed: number; readonly p99: number } {
  const [before, during] = [phases.find(({ name }) => name === 'before'), phases.find(({ name }) => name === 'during')];
  const share = (read: (phase: Phase) => number): number =>
    before === undefined || during === undefined ? NaN : read(during) / read(before);
  return {
    rate: share(({ perSecond }) => perSecond),
    landed: share(({ landedPerSecond }) => landedPerSecond),
    p99: share(({ p99 }) => p99),
  };
}
