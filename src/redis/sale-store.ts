import { Bug } from '../core/errors.js';
import { unitsOfBucket } from '../core/sale.js';
import type { SetStateOutcome, SaleStore } from '../core/ports/stock-store.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { bucketKeys } from './keys.js';

/** How an owner loads and switches a sale in Redis. */
export function createSaleStore({ run }: RedisConnection): SaleStore {
  return {
    async warm(sale): Promise<'warmed' | 'already_warm'> {
      let outcome: 'warmed' | 'already_warm' = 'already_warm';
      for (let bucket = 0; bucket < sale.buckets; bucket++) {
        const keys = bucketKeys({ saleId: sale.saleId, bucket });
        const { epoch, opensAtMs, closesAtMs, limitPerBuyer } = sale;
        const args = [unitsOfBucket(sale, bucket), epoch, opensAtMs, closesAtMs, limitPerBuyer, sale.buckets];
        const word = await asOperationalError('warm', () => run('warm', [keys.stock, keys.sale], args));
        if (word === 'warmed') outcome = 'warmed';
        else if (word !== 'already_warm') throw new Bug(`warm answered the word ${String(word)}`);
      }
      return outcome;
    },

    async setState(sale, state): Promise<SetStateOutcome> {
      for (let bucket = 0; bucket < sale.buckets; bucket++) {
        const keys = bucketKeys({ saleId: sale.saleId, bucket });
        const word = await asOperationalError('gate', () => run('set-state', [keys.sale], [state]));
        if (word === 'not_warmed' || word === 'repairing' || word === 'closed') return word;
        if (word !== 'set') throw new Bug(`gate answered the word ${String(word)}`);
      }
      return 'set';
    },
  };
}
