import { doublingDelayMs } from '../core/back-off.js';
import { assertNever } from '../core/errors.js';
import type { Log } from '../core/ports/log.js';
import type { PaymentCases } from '../core/ports/payment-cases.js';
import type { LeasedOrderRefund, OrderRefunds } from '../core/ports/order-refunds.js';
import type { PaymentProvider, RefundOutcome } from '../core/ports/payment-provider.js';
import type { LeasedRefund, RefundRepository } from '../core/ports/refund-repository.js';
import type { Job } from '../core/job.js';
import type { OrderJobMetrics } from './metrics.js';
import { workOff } from './work-off.js';

export interface PayRefundsPorts {
  readonly refunds: RefundRepository;
  readonly cases: PaymentCases;
  readonly provider: PaymentProvider;
  readonly log: Log;
  readonly metrics: OrderJobMetrics;
}

/** A refund that got no answer is retried after 2, 4, 8 … s, and at least every ten minutes. */
const RETRY_FIRST_MS = 2_000;
const RETRY_MAX_MS = 600_000;

/**
 * Pays due refunds. The key of a refund is its payment: if a keeper dies before it updates the row, the call is
 * repeated, but no money moves twice. No refund is given up: a refused one stays due and waits for an operator.
 * @param options `max`: refunds leased and paid at the same time; `leaseMs`: longer than the provider takes; then the
 * refund of a dead keeper is due again
 */
export function payRefunds(
  ports: PayRefundsPorts,
  { max, leaseMs }: { readonly max: number; readonly leaseMs: number },
): Job {
  return {
    name: 'pay-refunds',
    runOnce: () =>
      workOff(
        () => ports.refunds.lease(max, leaseMs),
        (refund) => pay(refund, ports),
        max,
      ),
  };
}

export interface PayOrderRefundsPorts extends Omit<PayRefundsPorts, 'refunds'> {
  readonly refunds: OrderRefunds;
}

/**
 * Pays refunds that operators have ordered. The refund id is the key at the provider, so a repeat moves no money twice.
 * A refused refund ends: its order returns to `paid`, and a case informs a person.
 * @param options `max`: refunds per run, which limits the rate of calls to the provider
 */
export function payOrderRefunds(
  ports: PayOrderRefundsPorts,
  { max, leaseMs }: { readonly max: number; readonly leaseMs: number },
): Job {
  return {
    name: 'pay-order-refunds',
    async runOnce() {
      const due = await ports.refunds.lease(max, leaseMs);
      const results = await Promise.allSettled(due.map((refund) => payOrder(refund, ports)));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    },
  };
}

/** @throws OperationalError mysql; the refund is due again when its lease expires */
async function payOrder(refund: LeasedOrderRefund, ports: PayOrderRefundsPorts): Promise<void> {
  const { refunds, cases, provider, log, metrics } = ports;
  const { refundId, orderId, paymentId, amountCents, currency, attempts } = refund;
  const part = { refundId, currency };
  const answer: RefundOutcome =
    amountCents === 0
      ? { outcome: 'refunded' } // a free order: no money moves
      : await provider.refund(paymentId, amountCents, `${paymentId}-${refundId}`, part);
  metrics.refundTried(answer.outcome);
  const found = { paymentId, orderId, amountCents, currency };
  switch (answer.outcome) {
    case 'refunded':
      if (await refunds.settle(refundId)) return;
      log.error({ ...found, refundId, attempts }, MARKED_MEANWHILE);
      return cases.note({ kind: 'refunded_twice', subject: subjectOf(refundId), ...found, detail: MARKED_MEANWHILE });
    case 'refused':
      log.error({ ...found, refundId, detail: answer.detail }, 'a refund was refused; the order is paid again');
      await cases.note({ kind: 'refund_failed', subject: subjectOf(refundId), ...found, detail: answer.detail });
      return refunds.refuse(refundId, `refused: ${answer.detail}`);
    case 'unknown':
      return refunds.postpone(refund, doublingDelayMs(attempts, RETRY_FIRST_MS, RETRY_MAX_MS), NO_ANSWER);
    default:
      return assertNever(answer);
  }
}

const subjectOf = (refundId: string): string => `order-refund-${refundId}`;
const NO_ANSWER = 'no answer from the provider';

const MARKED_MEANWHILE =
  'a refund was marked as done while the provider made it; if a person paid it too, it was paid twice';

/** @throws OperationalError mysql; the refund is due again when its lease expires */
async function pay(refund: LeasedRefund, { refunds, cases, provider, log, metrics }: PayRefundsPorts): Promise<void> {
  const { paymentId, orderId, amountCents, attempts } = refund;
  const answer = await provider.refund(paymentId, amountCents, paymentId);
  metrics.refundTried(answer.outcome);
  switch (answer.outcome) {
    case 'refunded':
      if (await refunds.markRefunded(paymentId)) return;
      log.error({ paymentId, orderId, attempts }, MARKED_MEANWHILE);
      return cases.note({
        kind: 'refunded_twice',
        subject: paymentId,
        ...{ paymentId, orderId, amountCents, currency: null },
        detail: MARKED_MEANWHILE,
      });
    case 'refused':
      log.error({ paymentId, orderId, attempts, detail: answer.detail }, 'a refund was refused; ask the provider');
      return refunds.postpone(refund, RETRY_MAX_MS, `refused: ${answer.detail}`);
    case 'unknown':
      return refunds.postpone(refund, doublingDelayMs(attempts, RETRY_FIRST_MS, RETRY_MAX_MS), NO_ANSWER);
    default:
      return assertNever(answer);
  }
}
