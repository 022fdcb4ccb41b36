import type { NonceStore, NonceTaken } from '../core/ports/admission-stores.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { nonceKey, NONCES_KEY } from './keys.js';

export function createNonceStore({ run }: RedisConnection): NonceStore {
  return {
    async take(keyId, nonce, { lifeMs, signedAtMs }) {
      const keys = [nonceKey(keyId, nonce), NONCES_KEY];
      return asOperationalError(
        'take a nonce',
        () => run('take-nonce', keys, [lifeMs, signedAtMs]) as Promise<NonceTaken>,
      );
    },
  };
}
