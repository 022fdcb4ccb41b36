import type { Handed, PurchaseTokenStore, Spent } from '../core/ports/admission-stores.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { purchaseTokensKey } from './keys.js';
import { asList } from './replies.js';

/** After the sale: whoever asks how his purchase went has done so by then. In ms. */
const KEPT_MS = 86_400_000;

export function createPurchaseTokenStore({ run }: RedisConnection): PurchaseTokenStore {
  return {
    async hand({ saleId, fromMs, untilMs, tokensMax }, userId) {
      const args = [userId, fromMs, untilMs, tokensMax, KEPT_MS];
      const reply = await asOperationalError('hand out a purchase token', () =>
        run('issue-token', [purchaseTokensKey(saleId)], args),
      );
      const [outcome, nowMs] = asList(reply);
      return { outcome: outcome as Handed, nowMs: Number(nowMs) };
    },

    async spend({ saleId, userId, requestId }, isGood) {
      const args = [userId, requestId, isGood ? 1 : 0, KEPT_MS];
      return asOperationalError(
        'spend a purchase token',
        () => run('redeem-token', [purchaseTokensKey(saleId)], args) as Promise<Spent>,
      );
    },
  };
}
