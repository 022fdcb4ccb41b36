import type { Issued, PurchaseTokenStore, Redeemed } from '../core/ports/admission-stores.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { purchaseTokenKeys } from './keys.js';
import { asList } from './replies.js';

/** How long tokens are kept after the sale, ms. By then, buyers have asked for the result of their purchase. */
const KEPT_MS = 86_400_000;

export function createPurchaseTokenStore({ run }: RedisConnection): PurchaseTokenStore {
  return {
    async issue(issue, { userId, address }) {
      const { saleId, fromMs, untilMs, opensAtMs, lifeMs, tokensMax, perBuyer, perAddress } = issue;
      const { tokens, ends, from } = purchaseTokenKeys;
      const keys = [tokens(saleId), ends(saleId), from(saleId, address ?? '')];
      const addressMax = address === null ? 0 : (perAddress ?? 0);
      const args = [userId, fromMs, untilMs, opensAtMs, lifeMs, tokensMax, perBuyer, addressMax, KEPT_MS];
      const [outcome, atMs] = asList(
        await asOperationalError('issue a purchase token', () => run('issue-token', keys, args)),
      );
      return { outcome: outcome as Issued, atMs: Number(atMs) };
    },

    async redeem({ saleId, userId, requestId, address }, isGood) {
      const keys = [purchaseTokenKeys.tokens(saleId), purchaseTokenKeys.from(saleId, address ?? '')];
      const args = [userId, requestId, isGood ? 1 : 0, KEPT_MS];
      return asOperationalError('redeem a purchase token', () => run('redeem-token', keys, args) as Promise<Redeemed>);
    },
  };
}
