import type { Issued, PurchaseTokenStore, Redeemed } from '../core/ports/admission-stores.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { purchaseTokensKey } from './keys.js';
import { asList } from './replies.js';

/** After the sale, ms: buyers have asked for the result of their purchase by then. */
const KEPT_MS = 86_400_000;

export function createPurchaseTokenStore({ run }: RedisConnection): PurchaseTokenStore {
  return {
    async issue({ saleId, fromMs, untilMs, tokensMax }, userId) {
      const args = [userId, fromMs, untilMs, tokensMax, KEPT_MS];
      const reply = await asOperationalError('issue a purchase token', () =>
        run('issue-token', [purchaseTokensKey(saleId)], args),
      );
      const [outcome, nowMs] = asList(reply);
      return { outcome: outcome as Issued, nowMs: Number(nowMs) };
    },

    async redeem({ saleId, userId, requestId }, isGood) {
      const args = [userId, requestId, isGood ? 1 : 0, KEPT_MS];
      return asOperationalError(
        'redeem a purchase token',
        () => run('redeem-token', [purchaseTokensKey(saleId)], args) as Promise<Redeemed>,
      );
    },
  };
}
