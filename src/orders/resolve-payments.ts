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
  readonly repository: OrderRepository;
  readonly attempts: PaymentAttempts;
  readonly provider: PaymentProvider;
  readonly transitions: OrderTransitions;
  readonly log: Log;
}

/** At this age, a charge unknown to the provider never arrives, and a buyer who has not answered the bank has gone. */
const ON_ITS_WAY_MAX_MS = 600_000;
/**
 * The provider is asked again after 2, 4, 8 … s, at least every ten minutes. Pauses depend on the time since the last
 * start, not on the tries, so a buyer who keeps trying does not keep the keeper away.
 */
const RETRY_FIRST_MS = 2_000;
const RETRY_MAX_MS = 600_000;

/**
 * Asks the provider about a charge and records the answer: money pays the order, or is owed back if the order has ended
 * (protocol rule 10). Safe to repeat and to run concurrently: a payment counts once.
 * @param giveUp the charge is no longer needed: the order has ended, or its buyer pays with another key
 * @throws OperationalError mysql; the attempt stays open
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
    log.error({ orderId, key, amountCents }, 'a payment attempt has no order; ask the provider');
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
        'money was taken that cannot be recorded; ask the provider',
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
      await attempts.postpone(attempt, askAgainInMs(ageMs), 'the provider does not know this charge');
      return 'open';
    case 'action_needed':
      await attempts.postpone(attempt, askAgainInMs(ageMs), 'the buyer has not confirmed the payment at the bank');
      return 'open';
    case 'unknown':
      await attempts.postpone(attempt, askAgainInMs(ageMs), 'no answer from the provider');
      return 'open';
    default:
      return assertNever(found);
  }
}

/** One call is made as soon as the charge can no longer be on its way. */
function askAgainInMs(ageMs: number): number {
  const delayMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS + Math.max(0, ageMs - PROVIDER_ASKED_AFTER_MS));
  const leftMs = ON_ITS_WAY_MAX_MS - ageMs;
  return leftMs > 0 ? Math.max(RETRY_FIRST_MS, Math.min(delayMs, leftMs)) : delayMs;
}

/**
 * Asks about the open charges of an order, after the provider has reported a change.
 * @throws OperationalError mysql; a keeper then resolves the remaining charges
 */
export async function resolveOrder(orderId: string, ports: ResolvePorts): Promise<void> {
  for (const attempt of await ports.attempts.openOf(orderId)) await resolveAttempt(attempt, ports);
}

/**
 * Resolves charges that an api left open, because it died or MySQL was down. Gives up only charges that the provider
 * does not know.
 * @param options `max`: maximum number of attempts leased and handled in parallel; `leaseMs`: longer than the provider
 * takes
 */
export function resolvePayments(
  ports: ResolvePorts & { readonly metrics: OrderJobMetrics },
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
