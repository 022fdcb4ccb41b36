import { randomBytes } from 'node:crypto';
import { loadConfig } from '../../src/core/config/load.js';
import { silentLog } from '../../test/helpers/silent-log.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createLimitStore } from '../../src/redis/limit-store.js';
import { createNonceStore } from '../../src/redis/nonce-store.js';
import { createPurchaseTokenStore } from '../../src/redis/purchase-token-store.js';
import { serveChild } from '../load/child.js';
import type { LayerCost } from './cost.js';
import { evenStreamCosts, limitCosts, listsCost } from './lists-and-limits.js';
import { passCost, signCosts, tokenCosts } from './signatures-and-tokens.js';
import { breakerCosts, degradeCost } from './breakers-and-degradation.js';
import type { LayersTask } from './layers.js';

/** A busy machine may pause. */
const REPLY_TIMEOUT_MS = 30_000;

async function redisSeconds({ redis }: RedisConnection): Promise<number> {
  const text = await redis.info('cpu');
  const figure = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1]);
  return figure('used_cpu_user') + figure('used_cpu_sys');
}

serveChild<LayersTask, LayerCost[]>(async ({ redisUrl, ms }) => {
  const options = { ...loadConfig(['redis'], { ...process.env, REDIS_URL: redisUrl }).redis };
  const connection = await connectRedis({ ...options, replyTimeoutMs: REPLY_TIMEOUT_MS }, silentLog);
  try {
    const redisCpu = (): Promise<number> => redisSeconds(connection);
    const shared = { redisCpu, ms };
    const front = { nonces: createNonceStore(connection), tokens: createPurchaseTokenStore(connection), ...shared };
    const run = randomBytes(4).toString('hex');
    return [
      listsCost(),
      ...(await limitCosts({ store: createLimitStore(connection), run, ...shared })),
      ...(await evenStreamCosts({ ms })),
      ...(await signCosts(front)),
      ...(await tokenCosts(front)),
      passCost(),
      ...(await breakerCosts({ ms })),
      degradeCost(),
    ];
  } finally {
    await connection.close();
  }
});
