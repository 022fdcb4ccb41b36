/** Remembers which nonces were used, for all processes together. */
export interface NonceStore {
  /**
   * Takes a nonce for `lifeMs`; of many who try at once, one gets it.
   * @param keyId, nonce 1 to 64 characters of A-Z a-z 0-9 _ -; each key has nonces of its own
   * @returns `fresh` for the first, `used` for everybody after him
   * @throws OperationalError redis, when nobody knows: the nonce may be taken or not
   */
  take(keyId: string, nonce: string, lifeMs: number): Promise<'fresh' | 'used'>;
}
