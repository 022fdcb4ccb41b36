import type { SaleScripts, ScriptRunner } from './script-runner.js';

/** A condition under which a script answers a word, as a change to a sale in which it would otherwise accept. */
export interface Condition {
  readonly word: string;
  readonly setting: Setting;
}

/** What a condition may set. Two conditions that set one thing differently cannot hold at the same time. */
export interface Setting {
  /** Marker of the batch. */
  readonly marker?: string;
  /** State of the sale; `missing`: the sale hash is gone. */
  readonly state?: 'missing' | 'repair' | 'paused' | 'closed' | 'warm';
  /** Of the sale, against that of the batch. */
  readonly epoch?: 'earlier' | 'later';
  /** The server is not the one that the sale was loaded on. */
  readonly server?: 'another';
  /** The sale has another number of buckets than the caller takes it to have. */
  readonly buckets?: 'another';
  readonly opens?: 'later';
  readonly closes?: 'earlier';
  /** Quantity of an entry that is stored under the key already. */
  readonly entry?: number;
  /** Units the buyer has already. */
  readonly bought?: number;
  readonly stock?: number;
}

export interface Clash {
  readonly first: Condition;
  readonly second: Condition;
  readonly both: Setting;
}

/**
 * All pairs of conditions of different words that can hold at once; the script must answer the word that is earlier in the
 * list. A word may have several conditions.
 */
export function clashesOf(conditions: readonly Condition[]): Clash[] {
  return conditions.flatMap((first, index) =>
    conditions.slice(index + 1).flatMap((second) => {
      if (first.word === second.word || !areCompatible(first.setting, second.setting)) return [];
      return [{ first, second, both: { ...first.setting, ...second.setting } }];
    }),
  );
}

/** Pairs of words that no clash covers because they exclude each other; a test lists them. */
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

export const LIMIT = 2;
export const BATCH_EPOCH = 2;

const EPOCHS = { earlier: BATCH_EPOCH - 1, same: BATCH_EPOCH, later: BATCH_EPOCH + 1 } as const;

/** A sale in which all of these conditions hold for buyer `u1` and key `k1`, and only these. */
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
