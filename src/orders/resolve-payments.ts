import { assertNever } from '../core/errors.js';
import type { Job } from '../core/job.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { OpenAttempt, PaymentAttempts, ResolvedAttempt } from '../core/ports/payment-attempts.js';
import { PROVIDER_ASKED_AFTER_MS, type PaymentProvider } from '../core/ports/payment-provider.js';
import type { OrderJobMetrics } from './metrics.js';
import { workOff } from './work-off.js';

export interface ResolvePorts {
  readonly repository: Pick<OrderRepository, 'findOrder'>;
  readonly attempts: Pick<PaymentAttempts, 'close' | 'postpone'>;
  readonly provider: PaymentProvider;
  readonly transitions: Pick<OrderTransitions, 'pay'>;
  readonly log: Log;
}

/**
 * What the provider has not heard of for so long will not arrive any more: no call is on its way for minutes. A buyer whose
 * bank has asked them for so long is gone.
 */
const ON_ITS_WAY_MAX_MS = 600_000;
/**
 * One without an answer is asked for again after 2, 4, 8 … s; and every ten minutes at the latest. Counted from when it was begun
 * last, and not by how often: a buyer who tries again and again must not keep a keeper away.
 */
const RETRY_FIRST_MS = 2_000;
const RETRY_MAX_MS = 600_000;

/**
 * Asks the provider what became of a charge, and records it: money pays the order, or is owed back where the order has
 * ended (protocol rule 10). Safe to repeat, and by several at once: a payment counts once.
 * @param giveUp nobody waits for this charge: the order has ended, or its buyer pays with another key
 * @throws OperationalError mysql; it stays open
 */
export async function resolveAttempt(
  attempt: OpenAttempt,
  ports: ResolvePorts,
  giveUp = attempt.ageMs >= ON_ITS_WAY_MAX_MS,
): Promise<ResolvedAttempt> {
  const { attempts, provider, transitions, log } = ports;
  const { orderId, key, amountCents, ageMs } = attempt;
  const order = await ports.repository.findOrder(orderId);
  if (order === null) {
    log.error({ orderId, key, amountCents }, 'a payment attempt without its order: ask the provider');
    await attempts.postpone(attempt, RETRY_MAX_MS, 'there is no such order');
    return 'open';
  }
  const found = await provider.lookUp(orderId, { amountCents, currency: order.currency }, key, giveUp);
  switch (found.outcome) {
    case 'succeeded': {
      const moved = await transitions.pay(orderId, found.payment);
      if (moved === 'paid' || moved === 'refund_due') {
        await attempts.close(attempt, 'charged');
        return 'charged';
      }
      log.error(
        { orderId, outcome: moved, ...found.payment },
        'money was taken that cannot be recorded: ask the provider',
      );
      await attempts.postpone(attempt, RETRY_MAX_MS, `money was taken that cannot be recorded: ${moved}`);
      return 'open';
    }
    case 'declined':
      await attempts.close(attempt, 'declined');
      return 'declined';
    case 'not_found':
      if (ageMs >= ON_ITS_WAY_MAX_MS) {
        await attempts.close(attempt, 'not_charged');
        return 'not_charged';
      }
      await attempts.postpone(attempt, askAgainInMs(ageMs), 'the provider has not heard of it');
      return 'open';
    case 'action_needed':
      await attempts.postpone(attempt, askAgainInMs(ageMs), 'the buyer has not confirmed it at their bank');
      return 'open';
    case 'unknown':
      await attempts.postpone(attempt, askAgainInMs(ageMs), 'no answer from the provider');
      return 'open';
    default:
      return assertNever(found);
  }
}

/** Once more just when it is known that nothing is on its way any more. */
function askAgainInMs(ageMs: number): number {
  const delayMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS + Math.max(0, ageMs - PROVIDER_ASKED_AFTER_MS));
  const leftMs = ON_ITS_WAY_MAX_MS - ageMs;
  return leftMs > 0 ? Math.max(RETRY_FIRST_MS, Math.min(delayMs, leftMs)) : delayMs;
}

/**
 * The provider reports that something became of a charge of this order: what, it is asked.
 * @throws OperationalError mysql; what it did not come to stays open, for a keeper
 */
export async function resolveOrder(
  orderId: string,
  ports: ResolvePorts & { readonly attempts: Pick<PaymentAttempts, 'openOf'> },
): Promise<void> {
  for (const attempt of await ports.attempts.openOf(orderId)) await resolveAttempt(attempt, ports);
}

export interface ResolvePaymentsPorts extends ResolvePorts {
  readonly attempts: Pick<PaymentAttempts, 'lease' | 'close' | 'postpone'>;
  readonly metrics: Pick<OrderJobMetrics, 'attemptResolved'>;
}

/**
 * Finds out what became of charges that an api began and did not finish: it died, or MySQL was out after the charge. None
 * is given up but those that the provider never heard of.
 * @param options `max`: attempts leased together and asked for at the same time; `leaseMs`: longer than the provider takes
 */
export function resolvePayments(
  ports: ResolvePaymentsPorts,
  { max, leaseMs }: { readonly max: number; readonly leaseMs: number },
): Job {
  return {
    name: 'resolve-payments',
    runOnce: () =>
      workOff(
        () => ports.attempts.lease(max, leaseMs),
        async (attempt) => ports.metrics.attemptResolved(await resolveAttempt(attempt, ports)),
        max,
      ),
  };
}
