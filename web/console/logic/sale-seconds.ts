import type { LiveSale, SaleSecond, SaleSeconds } from '../api/types.js';

/** Columns of a chart: Unix seconds, then one column for each line; null: not known. */
export interface ChartData {
  readonly seconds: readonly number[];
  readonly won: readonly (number | null)[];
  readonly landed: readonly (number | null)[];
  readonly refused: readonly (number | null)[];
}

export const RANGES = ['m5', 'm15', 'h1', 'opening'] as const;
export type Range = (typeof RANGES)[number];

const RANGE_MS: Readonly<Record<Range, number>> = { m5: 300_000, m15: 900_000, h1: 3_600_000, opening: 300_000 };
/** The quiet before a sale opens, so that its first second is not at the edge. */
const BEFORE_OPENING_MS = 15_000;

/** By then every api has said what it answered in a second: the figures of a snapshot are of that one. */
const REPORTED_AFTER_MS = 2_000;
/** A second is shown so long after it began, so that its snapshot is there; one that was missed can be read meanwhile. */
const SHOWN_AFTER_MS = 5_000;

/** The stretch that is shown, in whole seconds: up to now, or to the end of a sale that is over; or the opening. */
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

/** The same as far as it can be read already. */
export const readableStretch: typeof stretchOf = (range, sale, nowMs) =>
  stretchOf(range, sale, nowMs, REPORTED_AFTER_MS);

/** The second of a snapshot, as the history of the sale has it; null: its rates are not known. */
export const secondOf = ({
  secondAtMs,
  acceptedPerSecond,
  landedPerSecond,
  refusedPerSecond,
}: LiveSale): SaleSecond | null =>
  secondAtMs === null || landedPerSecond === null
    ? null
    : { atMs: secondAtMs, won: acceptedPerSecond, landed: landedPerSecond, refused: refusedPerSecond };

/** Seconds that were heard again replace what was known of them; the newest `most` are kept, in order. */
export function mergedSeconds(known: readonly SaleSecond[], more: readonly SaleSecond[], most = 4_000): SaleSecond[] {
  const bySecond = new Map([...known, ...more].map((second) => [second.atMs, second]));
  return [...bySecond.values()].sort((a, b) => a.atMs - b.atMs).slice(-most);
}

/** What was read of a sale, and heard since. */
export interface KnownSeconds {
  /** In order. */
  readonly seconds: readonly SaleSecond[];
  /** Up to here nothing is missing: the api leaves out seconds in which nothing happened. */
  readonly wholeToMs: number;
}

/** What the api says of a stretch that begins where the others end; it may have stopped before the end of it. */
export const withRead = (known: KnownSeconds, { toMs, seconds }: Pick<SaleSeconds, 'toMs' | 'seconds'>): KnownSeconds =>
  joined(mergedSeconds(seconds, known.seconds), Math.max(known.wholeToMs, toMs));

/** The second of a snapshot. */
export const withHeard = ({ seconds, wholeToMs }: KnownSeconds, second: SaleSecond): KnownSeconds =>
  joined(mergedSeconds(seconds, [second]), wholeToMs);

/** One second that was heard after the other is a whole, too. */
function joined(seconds: readonly SaleSecond[], wholeToMs: number): KnownSeconds {
  let toMs = wholeToMs;
  for (const { atMs } of seconds) if (atMs === toMs) toMs += 1000;
  return { seconds, wholeToMs: toMs };
}

/**
 * Every second of a stretch: zero where nothing happened, null where it is not known. Nobody knows seconds that were neither
 * read nor heard, and what was accepted and refused before the time that is remembered.
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

/** What a stretch of a sale came to. `peak`: of accepted purchases in one second. */
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
