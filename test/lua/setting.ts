import type { SaleBench, ScriptBench } from './script-runner.js';
import type { Setting } from './precedence.js';

export const LIMIT = 2;
export const BATCH_EPOCH = 2;

const EPOCHS = { earlier: BATCH_EPOCH - 1, same: BATCH_EPOCH, later: BATCH_EPOCH + 1 } as const;

/** A sale in which all of these conditions hold for buyer `u1` and key `k1`, and only these. */
export async function saleIn(setting: Setting, bench: ScriptBench, batchId: string): Promise<SaleBench> {
  const nowMs = await bench.nowMs();
  const state = setting.state === undefined || setting.state === 'missing' ? 'open' : setting.state;
  const sale = await bench.sale(
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
