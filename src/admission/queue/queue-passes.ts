import type { Clock } from '../../core/ports/clock.js';
import type { AdmissionMetrics } from '../../core/ports/admission-metrics.js';
import { covers } from '../sales.js';
import type { Seals } from '../sign/seals.js';
import type { QueueRules } from './queue-rules.js';

export interface QueuePassesParts {
  readonly rules: () => QueueRules;
  readonly seals: Seals;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly metrics: Pick<AdmissionMetrics, 'refused'>;
}

/** The guard at the purchase: who has no pass of the waiting room goes there first. Asks nobody, stores nothing. */
export class QueuePasses {
  readonly #parts: QueuePassesParts;

  constructor(parts: QueuePassesParts) {
    this.#parts = parts;
  }

  /** @param pass the header `Seckill-Queue-Pass` @returns null: let him in */
  check(saleId: string, userId: string, pass: string | string[] | undefined): 'forbidden' | null {
    const { mode, sales } = this.#parts.rules();
    if (mode === 'off' || !covers(sales, saleId)) return null;
    const flaw = this.#flawOf(saleId, userId, pass);
    if (flaw === null) return null;
    this.#parts.metrics.refused('queue', flaw, mode);
    return mode === 'on' ? 'forbidden' : null;
  }

  #flawOf(
    saleId: string,
    userId: string,
    pass: string | string[] | undefined,
  ): 'no_pass' | 'bad_pass' | 'ended' | null {
    if (pass === undefined) return 'no_pass';
    const fields = this.#parts.seals.open({ kind: 'queue-pass', saleId, userId }, String(pass));
    if (fields === null) return 'bad_pass';
    return Number(fields[0]) > this.#parts.clock.nowMs() ? null : 'ended';
  }
}
