import type { NonceStore } from '../core/ports/admission-stores.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { nonceKey } from './keys.js';

export function createNonceStore({ redis }: RedisConnection): NonceStore {
  return {
    async take(keyId, nonce, lifeMs) {
      const reply = await asOperationalError('take a nonce', () =>
        redis.set(nonceKey(keyId, nonce), '1', 'PX', lifeMs, 'NX'),
      );
      return reply === 'OK' ? 'fresh' : 'used';
    },
  };
}
