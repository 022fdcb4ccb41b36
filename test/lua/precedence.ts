import type { SaleScripts, ScriptRunner } from './script-runner.js';

/** A change that makes a script answer a word instead of accepting the purchase. */
export interface Condition {
  readonly word: string;
  readonly setting: Setting;
}

/** The values that a condition may set. Two conditions that give one field different values exclude each other. */
export interface Setting {
  readonly marker?: string;
  /** State of the sale. `missing`: the sale hash does not exist. */
  readonly state?: 'missing' | 'repair' | 'paused' | 'closed' | 'warm';
  /** Epoch of the sale relative to the epoch of the batch. */
  readonly epoch?: 'earlier' | 'later';
  /** The sale was loaded on another server. */
  readonly server?: 'another';
  /** The sale has another number of buckets than the caller expects. */
  readonly buckets?: 'another';
  readonly opens?: 'later';
  readonly closes?: 'earlier';
  /** Quantity of an entry that the key already has. */
  readonly entry?: number;
  /** Units that the buyer already has. */
  readonly bought?: number;
  readonly stock?: number;
}

export interface Clash {
  readonly first: Condition;
  readonly second: Condition;
  readonly both: Setting;
}

/**
 * Returns all pairs of conditions of different words that can hold at once. The script must answer the word that comes
 * first in the list. A word may have several conditions.
 */
export function clashesOf(conditions: readonly Condition[]): Clash[] {
  return conditions.flatMap((first, index) =>
    conditions.slice(index + 1).flatMap((second) => {
      if (first.word === second.word || !areCompatible(first.setting, second.setting)) return [];
      return [{ first, second, both: { ...first.setting, ...second.setting } }];
    }),
  );
}

/** Returns pairs of words that no clash covers because they exclude each other. A test lists them. */
export function uncoveredPairs(conditions: readonly Condition[]): string[] {
  const words = [...new Set(conditions.map(({ word }) => word))];
  const covered = new Set(clashesOf(conditions).map(({ first, second }) => `${first.word} > ${second.word}`));
  return words
    .flatMap((first, index) => words.slice(index + 1).map((second) => `${first} > ${second}`))
    .filter((pair) => !covered.has(pair));
}

function areCompatible(a: Setting, b: Setting): boolean {
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return Object.keys(left).every((key) => !(key in right) || left[key] === right[key]);
}

export const describeSetting = (setting: Setting): string =>
  Object.entries(setting)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');

const LIMIT = 2;
export const BATCH_EPOCH = 2;

/** Conditions of one purchase `u1/k1*1`, in the order of the scripts' headers. */
export const PURCHASE_CONDITIONS: readonly Condition[] = [
  { word: 'replayed', setting: { entry: 1 } },
  { word: 'request_conflict', setting: { entry: 2 } },
  { word: 'paused', setting: { state: 'paused' } },
  { word: 'closed', setting: { closes: 'earlier' } },
  { word: 'closed', setting: { state: 'closed' } },
  { word: 'not_open', setting: { state: 'warm' } },
  { word: 'not_open', setting: { opens: 'later' } },
  { word: 'limit_reached', setting: { bought: LIMIT } },
  { word: 'sold_out', setting: { stock: 0 } },
];

const EPOCHS = { earlier: BATCH_EPOCH - 1, same: BATCH_EPOCH, later: BATCH_EPOCH + 1 } as const;

/** Creates a sale in which exactly these conditions hold for `u1/k1`. */
export async function saleIn(setting: Setting, runner: ScriptRunner, batchId: string): Promise<SaleScripts> {
  const nowMs = await runner.nowMs();
  const state = setting.state === undefined || setting.state === 'missing' ? 'open' : setting.state;
  const sale = await runner.sale(
    {
      stock: setting.stock ?? 10,
      limitPerBuyer: LIMIT,
      epoch: EPOCHS[setting.epoch ?? 'same'],
      opensAtMs: nowMs + (setting.opens === 'later' ? 60_000 : -60_000),
      closesAtMs: nowMs + (setting.closes === 'earlier' ? -1 : 120_000),
    },
    state,
  );
  const { redis, keys } = sale;
  if (setting.state === 'missing') await redis.del(keys.sale);
  if (setting.server === 'another' && setting.state !== 'missing') await redis.hset(keys.sale, 'run_id', 'another');
  if (setting.buckets === 'another' && setting.state !== 'missing') await redis.hset(keys.sale, 'buckets', 8);
  if (setting.marker !== undefined) await redis.set(sale.marker(batchId), setting.marker);
  if (setting.entry !== undefined) await redis.hset(keys.requests, 'u1/k1', `held:earlier-batch:${setting.entry}`);
  if (setting.bought !== undefined) await redis.hset(keys.buyers, 'u1', setting.bought);
  return sale;
}
