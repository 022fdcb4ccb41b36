import { StandInServer, type StandInAnswer, type StandInRequest } from './stand-in-server.js';

export const SERVICE_KEY = 'a-key-of-the-payment-service';

type Fault = 'slow' | 'unheard' | 'error' | 'nonsense';

/**
 * A payment service as docs/payments.md requires. The card `declined` is refused, `asks` needs a confirmation, and
 * every other card pays. The first answer about a charge of the card `lost` never arrives.
 */
export class PaymentServiceStandIn {
  readonly charges = new Map<string, Record<string, unknown>>();
  /** Amounts by `refundId`, or by payment for a refund without an id. */
  readonly refunds = new Map<string, number>();
  readonly asked: StandInRequest[] = [];
  #fault: Fault | null = null;
  readonly #server: StandInServer;

  /** @param lateMs how long an answer takes */
  constructor(lateMs?: () => number) {
    this.#server = new StandInServer((request) => this.#answer(request), lateMs);
  }

  start(): Promise<string> {
    return this.#server.start();
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  breakNext(fault: Fault): void {
    this.#fault = fault;
  }

  #answer(request: StandInRequest): StandInAnswer | 'reset' {
    this.asked.push(request);
    if (request.headers.authorization !== `Bearer ${SERVICE_KEY}`) return { status: 401, body: {} };
    const fault = this.#fault;
    this.#fault = null;
    if (fault === 'unheard') return null;
    if (fault === 'error') return { status: 502, body: { status: 'succeeded' } };
    const known = this.charges.size;
    const body = this.#do(request);
    if (fault === 'slow') return null;
    if (this.charges.size > known && request.text.includes('"paymentMethod":"lost"')) return 'reset';
    return { status: 200, body: fault === 'nonsense' ? { status: 'perhaps' } : body };
  }

  #do({ method, path, query, text }: StandInRequest): object {
    if (method === 'POST' && path === '/pay/charges') {
      const { orderId, key, amountCents, currency, paymentMethod } = JSON.parse(text) as Record<string, string>;
      const name = `${orderId}/${key}`;
      const before = this.charges.get(name);
      if (before !== undefined) return before;
      const made =
        paymentMethod === 'declined'
          ? { status: 'declined' }
          : paymentMethod === 'asks'
            ? { status: 'action_needed', clientSecret: `secret-${key}` }
            : { status: 'succeeded', paymentId: `p-${orderId}-${key}`, amountCents, currency };
      this.charges.set(name, made);
      return made;
    }
    if (path === '/pay/refunds') {
      const {
        paymentId,
        refundId = paymentId,
        amountCents,
      } = JSON.parse(text) as {
        paymentId: string;
        refundId?: string;
        amountCents: number;
      };
      const isOurs = [...this.charges.values()].some((one) => one.paymentId === paymentId);
      if (isOurs) this.refunds.set(refundId, amountCents);
      return isOurs ? { status: 'refunded' } : { status: 'refused', detail: 'no such payment' };
    }
    const name = path.replace('/pay/charges/', '');
    const charge = this.charges.get(name) ?? { status: 'not_found' };
    if (query.get('giveUp') !== 'true' || charge.status === 'succeeded') return charge;
    this.charges.set(name, { status: 'declined' });
    return { status: 'declined' };
  }
}
