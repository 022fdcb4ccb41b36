import type { LiveSale, SaleSecond, SaleSeconds } from '../api/types.js';

/** Columns of a chart: Unix seconds, then a column for each line. Null means unknown. */
export interface ChartData {
  readonly seconds: readonly number[];
  readonly won: readonly (number | null)[];
  readonly landed: readonly (number | null)[];
  readonly refused: readonly (number | null)[];
}

export const RANGES = ['m5', 'm15', 'h1', 'opening'] as const;
export type Range = (typeof RANGES)[number];

const RANGE_MS: Readonly<Record<Range, number>> = { m5: 300_000, m15: 900_000, h1: 3_600_000, opening: 300_000 };
/** Time shown before a sale opens, so that its first second is not at the edge. */
const BEFORE_OPENING_MS = 15_000;

/**
 * How long it takes until every API process has reported what it answered in a second. The figures of a snapshot are
 * about that second.
 */
const REPORTED_AFTER_MS = 2_000;
/** How long after its start a second is shown. By then its snapshot has arrived, or a missed second has been read. */
const SHOWN_AFTER_MS = 5_000;

/** Returns the range to show, in whole seconds: up to now or to the end of the sale, or the opening. */
export function stretchOf(
  range: Range,
  sale: { readonly opensAtMs: number; readonly closesAtMs: number },
  nowMs: number,
  afterMs = SHOWN_AFTER_MS,
): { readonly fromMs: number; readonly toMs: number } {
  const lengthMs = RANGE_MS[range];
  const knownMs = nowMs - afterMs;
  const endMs =
    range === 'opening'
      ? Math.min(knownMs, sale.opensAtMs - BEFORE_OPENING_MS + lengthMs)
      : Math.min(knownMs, sale.closesAtMs);
  const toMs = Math.floor(endMs / 1000) * 1000;
  return { fromMs: toMs - lengthMs, toMs };
}

/** Returns the part of the range that can already be read. */
export const readableStretch: typeof stretchOf = (range, sale, nowMs) =>
  stretchOf(range, sale, nowMs, REPORTED_AFTER_MS);

/** Converts a snapshot to a second of the sale's history. Null if its rates are unknown. */
export const secondOf = ({
  secondAtMs,
  acceptedPerSecond,
  landedPerSecond,
  refusedPerSecond,
}: LiveSale): SaleSecond | null =>
  secondAtMs === null || landedPerSecond === null
    ? null
    : { atMs: secondAtMs, won: acceptedPerSecond, landed: landedPerSecond, refused: refusedPerSecond };

/** Merges seconds. Newer reports of a second replace older reports. Keeps the newest `most`, in order. */
export function mergedSeconds(known: readonly SaleSecond[], more: readonly SaleSecond[], most = 4_000): SaleSecond[] {
  const bySecond = new Map([...known, ...more].map((second) => [second.atMs, second]));
  return [...bySecond.values()].sort((a, b) => a.atMs - b.atMs).slice(-most);
}

/** Seconds of a sale that were read from the API or received since. */
export interface KnownSeconds {
  /** In order. */
  readonly seconds: readonly SaleSecond[];
  /** Nothing is missing before this time: the API leaves out seconds in which nothing happened. */
  readonly wholeToMs: number;
}

/**
 * Adds a range read from the API that begins where the known seconds end. The API may have stopped before the end of
 * the range.
 */
export const withRead = (known: KnownSeconds, { toMs, seconds }: Pick<SaleSeconds, 'toMs' | 'seconds'>): KnownSeconds =>
  joined(mergedSeconds(seconds, known.seconds), Math.max(known.wholeToMs, toMs));

/** Adds the second of a snapshot. */
export const withHeard = ({ seconds, wholeToMs }: KnownSeconds, second: SaleSecond): KnownSeconds =>
  joined(mergedSeconds(seconds, [second]), wholeToMs);

/** Extends the complete range by seconds that follow it without a gap. */
function joined(seconds: readonly SaleSecond[], wholeToMs: number): KnownSeconds {
  let toMs = wholeToMs;
  for (const { atMs } of seconds) if (atMs === toMs) toMs += 1000;
  return { seconds, wholeToMs: toMs };
}

/**
 * Returns every second of a range: zero if nothing happened, null if unknown. A second is unknown if it was neither
 * read nor received. Accepted and refused purchases are also unknown before the time that the API remembers.
 */
export function chartData({ seconds: known, wholeToMs }: KnownSeconds, fromMs: number, toMs: number): ChartData {
  const bySecond = new Map(known.map((second) => [second.atMs, second]));
  const rememberedFromMs =
    known[0]?.won === null ? (known.find(({ won }) => won !== null)?.atMs ?? Infinity) : -Infinity;
  const seconds: number[] = [];
  const won: (number | null)[] = [];
  const landed: (number | null)[] = [];
  const refused: (number | null)[] = [];
  for (let atMs = fromMs; atMs < toMs; atMs += 1000) {
    const second = bySecond.get(atMs);
    const quiet = atMs < wholeToMs ? 0 : null;
    const empty = atMs < rememberedFromMs ? null : quiet;
    seconds.push(atMs / 1000);
    won.push(second === undefined ? empty : second.won);
    landed.push(second === undefined ? quiet : second.landed);
    refused.push(second === undefined ? empty : refusals(second));
  }
  return { seconds, won, landed, refused };
}

export const refusals = ({ refused }: SaleSecond): number | null =>
  refused === null ? null : Object.values(refused).reduce((sum, count) => sum + count, 0);

/** Returns the totals of a range of a sale. `peak`: the most purchases accepted in a second. */
export function totalsOf(seconds: readonly SaleSecond[]) {
  const words: Record<string, number> = {};
  let [won, landed, refused, peak] = [0, 0, 0, 0];
  for (const second of seconds) {
    won += second.won ?? 0;
    landed += second.landed;
    refused += refusals(second) ?? 0;
    peak = Math.max(peak, second.won ?? second.landed);
    for (const [word, count] of Object.entries(second.refused ?? {})) words[word] = (words[word] ?? 0) + count;
  }
  return { won, landed, refused, peak, words };
}
