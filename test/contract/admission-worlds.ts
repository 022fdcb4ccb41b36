import type { NonceStore, PurchaseTokenStore } from '../../src/core/ports/admission-stores.js';
import { silentLog } from '../helpers/silent-log.js';
import { connectRedis, serverNowMs } from '../../src/redis/connection.js';
import { createNonceStore } from '../../src/redis/nonce-store.js';
import { createPurchaseTokenStore } from '../../src/redis/purchase-token-store.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryNonceStore } from '../helpers/memory/memory-admission-stores.js';
import { MemoryPurchaseTokenStore } from '../helpers/memory/memory-admission-stores.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { stackEnv } from '../helpers/stack-env.js';

/** The stores of admission as the contract suites see them. */
export interface AdmissionWorld {
  readonly nonces: NonceStore;
  readonly tokens: PurchaseTokenStore;
  /** Now on the clock of the stores, ms. */
  nowMs(): Promise<number>;
  /** Lets time pass. */
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

async function memoryWorld(): Promise<AdmissionWorld> {
  const clock = new ManualClock();
  return {
    nonces: new MemoryNonceStore(clock),
    tokens: new MemoryPurchaseTokenStore(clock),
    nowMs: async () => clock.nowMs(),
    elapse: (ms) => clock.sleep(ms),
    close: async () => undefined,
  };
}

async function redisWorld(url = stackEnv().REDIS_URL): Promise<AdmissionWorld> {
  const connection = await connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
  return {
    nonces: createNonceStore(connection),
    tokens: createPurchaseTokenStore(connection),
    nowMs: () => serverNowMs(connection.redis, 'any'), // all servers of a test are on this host
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    close: () => connection.close(),
  };
}

export const ADMISSION_WORLDS = [
  ['memory', memoryWorld],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;
