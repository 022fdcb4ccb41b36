import { decodeBatch } from '../core/batch.js';
import { assertNever } from '../core/errors.js';
import type { Log } from '../core/ports/log.js';
import type { CheckBack } from '../core/ports/channels.js';
import type { StockStore } from '../core/ports/stock-store.js';

export interface CheckBackPorts {
  readonly store: Pick<StockStore, 'resolve'>;
  readonly log: Log;
}

/**
 * Answers the broker's question about a half message from the marker of its batch. Any doubt is no answer, never a
 * rollback: the broker asks again (protocol rule 2).
 */
export function createCheckBack({ store, log }: CheckBackPorts): CheckBack {
  return async (body) => {
    const decoded = decodeBatch(body);
    if (decoded.outcome !== 'decoded') {
      // Another version of this program wrote it; one that knows it will be asked too.
      log.error({ reason: decoded.outcome, detail: decoded.detail }, 'check-back for a half message we cannot read');
      return 'no_answer';
    }
    const verdict = await store.resolve(decoded.batch);
    switch (verdict) {
      case 'deducted':
      case 'claimed':
      case 'outlived': // its marker may be lost, so a 202 may be out: whoever records it claims its units anew
      case 'unreplicated':
        return 'commit';
      case 'aborted':
        return 'rollback';
      case 'no_answer':
      case 'outcome_unknown':
        return 'no_answer';
      default:
        return assertNever(verdict);
    }
  };
}
