import type { AuditEntry } from '../../../src/core/ports/audit-log.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { CaseKind, CaseState, FoundCase, PaymentCases } from '../../../src/core/ports/payment-cases.js';
import type { CaseFilter, PaymentCase, PaymentCaseStore } from '../../../src/operate/refunds/payment-case-store.js';
import type { MemoryOrderTransitions } from './memory-order-transitions.js';

/** Cases about the payments in `MemoryOrderTransitions`. */
export class MemoryPaymentCases implements PaymentCases, PaymentCaseStore {
  readonly audited: AuditEntry[] = [];
  readonly rows: PaymentCase[] = [];
  readonly #transitions: Pick<MemoryOrderTransitions, 'payments'>;
  readonly #clock: Clock;

  constructor(transitions: Pick<MemoryOrderTransitions, 'payments'>, clock: Clock) {
    this.#transitions = transitions;
    this.#clock = clock;
  }

  async note(found: FoundCase, state: CaseState = 'open'): Promise<void> {
    const known = this.rows.find(({ kind, subject }) => kind === found.kind && subject === found.subject);
    const updatedAtMs = this.#clock.nowMs();
    if (known === undefined) {
      this.rows.push({ ...found, caseId: String(this.rows.length + 1), state, createdAtMs: updatedAtMs, updatedAtMs });
    } else if (known.detail !== found.detail) {
      const { detail, amountCents } = found;
      this.#put({ ...known, detail, amountCents, state, updatedAtMs });
    }
  }

  async settle(kind: CaseKind, subject: string): Promise<void> {
    const known = this.rows.find((row) => row.kind === kind && row.subject === subject);
    if (known?.state === 'open') this.#put({ ...known, state: 'closed', updatedAtMs: this.#clock.nowMs() });
  }

  async orderOf(paymentId: string): Promise<string | null> {
    return this.#transitions.payments.get(paymentId)?.orderId ?? null;
  }

  async list(
    { state }: CaseFilter,
    { afterCaseId = '0', max }: { readonly afterCaseId?: string; readonly max: number },
  ): Promise<PaymentCase[]> {
    const after = this.rows.filter(({ caseId }) => Number(caseId) > Number(afterCaseId));
    return after.filter((row) => state === undefined || row.state === state).slice(0, max);
  }

  async close(caseId: string, actor: string): Promise<PaymentCase | null> {
    const known = this.rows.find((row) => row.caseId === caseId);
    if (known === undefined || known.state === 'closed') return known ?? null;
    const closed: PaymentCase = { ...known, state: 'closed', updatedAtMs: this.#clock.nowMs() };
    this.#put(closed);
    const { kind, subject, detail } = known;
    this.audited.push({
      actor,
      action: 'payment_case.closed',
      subject: `payment_case:${caseId}`,
      before: { state: 'open' },
      after: { state: 'closed', kind, subject, detail },
    });
    return closed;
  }

  #put(row: PaymentCase): void {
    this.rows[Number(row.caseId) - 1] = row;
  }
}
