import { createHash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import request from 'supertest';
import { OperationalError } from '../../../src/core/errors.js';
import { PAYMENT_ID } from '../../../src/core/ids.js';
import type { ShownOrder } from '../../../src/core/order.js';
import type { HttpServices } from '../../../src/http/services.js';
import { PAYMENT_SIGNATURE, readPaymentEvent } from '../../../src/http/routes/payment-webhook.js';
import { createWebhookVerifier } from '../../../src/http/webhook-signature.js';
import { MemoryPaymentCases } from '../../helpers/memory/memory-payment-cases.js';
import { signWebhook } from '../../helpers/sign-webhook.js';
import type { CancelAnswer, PayAnswer, PayRequest } from '../../../src/orders/buyer-orders.js';
import { silentLog } from '../../helpers/silent-log.js';
import { loadStripe } from '../../helpers/stripe-stand-in.js';
import type { PaymentWebhook } from '../../../src/core/ports/payment-provider.js';
import type { Payment, PayOutcome } from '../../../src/core/ports/order-transitions.js';
import { AT_MS, bearer, FakeServices, ORDER, RawClient, startServer, type Started } from './http-harness.js';
import { partial } from '../../helpers/partial.js';

const PAID: ShownOrder = { ...ORDER, state: 'paid', paidAtMs: AT_MS + 1 };
const down = new OperationalError('mysql', 'ECONNREFUSED', { retryable: true });

describe('orders and payments over HTTP', () => {
  let fake: FakeServices;
  let server: Started | undefined;
  const serve = async (overrides: Partial<HttpServices> = {}): Promise<string> => {
    fake = new FakeServices(overrides);
    server = await startServer(fake);
    return server.url;
  };
  afterEach(() => server?.stop());

  describe('POST pay', () => {
    const path = '/v1/orders/99/pay';
    let asked: PayRequest[];
    const paying = (answer: PayAnswer): Promise<string> => {
      asked = [];
      return serve({
        payOrder: (one) => {
          asked.push(one);
          return Promise.resolve(answer);
        },
      });
    };

    const pay = (url: string, body?: object | string, headers: Record<string, string> = {}): request.Test =>
      request(url)
        .post(path)
        .set({ authorization: bearer(), ...headers })
        .send(body);

    it('returns 200 with the paid order to its buyer, with or without a key', async () => {
      const url = await paying({ outcome: 'paid', order: PAID });
      const { body } = await pay(url).expect(200);
      expect(body).to.deep.include({ orderId: '99', state: 'paid', paidAt: '2030-01-01T00:00:00.001Z' });
      expect(body).not.to.have.any.keys('userId', 'batchId');
      const another = { authorization: bearer('u2'), 'idempotency-key': 'k-1' };
      await pay(url, { paymentMethod: 'pm_1' }, another).expect(200);
      expect(asked).to.deep.equal([
        { orderId: '99', userId: 'u1', key: null, method: null },
        { orderId: '99', userId: 'u2', key: 'k-1', method: 'pm_1' },
      ]);
      expect(fake.counted).to.deep.equal(['order paid', 'order paid']);
    });

    it('passes a coupon on in capital letters, and returns 409 with the reason of a refusal', async () => {
      const url = await paying({ outcome: 'coupon_refused', why: 'in_use' });
      const { body } = await pay(url, { coupon: '7kq2mzp4wx' }).expect(409);
      expect(body).to.include({ code: 'coupon_refused', detail: 'Another payment is using the coupon.' });
      for (const coupon of ['7KQ2MZP4W', '7KQ2MZP4W0', 7]) await pay(url, { coupon }).expect(400);
      expect(asked).to.deep.equal([{ orderId: '99', userId: 'u1', key: null, method: null, coupon: '7KQ2MZP4WX' }]);
    });

    it('returns 202 with the client secret if the bank needs an action', async () => {
      const url = await paying({ outcome: 'action_needed', order: ORDER, clientSecret: 'pi_1_secret_2' });
      const { body } = await pay(url, { paymentMethod: 'pm_1' }).expect(202);
      expect(body).to.deep.equal({ outcome: 'action_needed', orderId: '99', clientSecret: 'pi_1_secret_2' });
      expect(fake.counted).to.deep.equal(['order action_needed']);
    });

    it('returns 400 without a payment if the body or the payment method is invalid', async () => {
      const url = await paying({ outcome: 'paid', order: PAID });
      for (const body of ['{', '{"paymentMethod":"4242 4242 4242 4242"}', '{"paymentMethod":7}']) {
        await pay(url, body, { 'content-type': 'application/json' }).expect(400);
      }
      await pay(url, 'x', { 'content-type': 'text/plain' }).expect(415);
      expect(asked).to.deep.equal([]);
    });

    const RETRYABLE: readonly string[] = ['outcome_unknown', 'payment_in_progress'];
    for (const [answer, status, code] of [
      [{ outcome: 'wrong_state', order: { ...PAID, state: 'expired' } }, 409, 'wrong_state'],
      [{ outcome: 'refund_due', order: { ...PAID, state: 'expired' } }, 409, 'refund_due'],
      [{ outcome: 'declined' }, 402, 'payment_declined'],
      [{ outcome: 'decline_limit_reached' }, 409, 'decline_limit_reached'],
      [{ outcome: 'payment_in_progress' }, 409, 'payment_in_progress'],
      [{ outcome: 'outcome_unknown' }, 503, 'outcome_unknown'],
      [{ outcome: 'payment_method_needed' }, 422, 'payment_method_needed'],
      [{ outcome: 'payment_not_configured' }, 501, 'payment_not_configured'],
      [{ outcome: 'not_found' }, 404, 'order_not_found'],
    ] as const) {
      it(`answers ${answer.outcome} with ${status} ${code}`, async () => {
        const url = await paying(answer);
        const { body } = await pay(url, undefined, { 'idempotency-key': 'k9' })
          .expect(status)
          .expect('content-type', /problem\+json/);
        expect(body).to.include({ code, requestId: 'k9', retryable: RETRYABLE.includes(code) });
        if (code === 'wrong_state') expect(body.detail).to.equal('Cannot pay an order that is expired.');
        expect(fake.counted).to.deep.equal([`order ${code}`]);
      });
    }

    it('does not reach the payment service without a token or with a malformed id or key [S4, S6]', async () => {
      const url = await paying({ outcome: 'not_found' });
      await request(url).post(path).expect(401).expect('www-authenticate', 'Bearer');
      await request(url).post('/v1/orders/9x/pay').set('authorization', bearer()).expect(400);
      const { body } = await pay(url, undefined, { 'idempotency-key': 'a b' }).expect(400);
      expect(body.detail).to.contain('Idempotency-Key');
      expect(asked).to.deep.equal([]);
      await request(url).get(path).expect(405).expect('allow', 'POST');
    });
  });

  describe('POST cancel', () => {
    const path = '/v1/orders/99/cancel';
    const cancelling = (answer: CancelAnswer): Promise<string> =>
      serve({
        cancelOrder: (orderId, userId) => (
          expect([orderId, userId]).to.deep.equal(['99', 'u1']),
          Promise.resolve(answer)
        ),
      });

    it('returns 200 with the cancelled order', async () => {
      const url = await cancelling({ outcome: 'cancelled', order: { ...PAID, state: 'cancelled', paidAtMs: null } });
      const { body } = await request(url).post(path).set('authorization', bearer()).expect(200);
      expect(body).to.include({ orderId: '99', state: 'cancelled', paidAt: null });
    });

    it('returns 409 for a paid order, 404 for a foreign order and 401 without a token', async () => {
      const url = await cancelling({ outcome: 'wrong_state', order: PAID });
      const { body } = await request(url).post(path).set('authorization', bearer()).expect(409);
      expect(body).to.include({ code: 'wrong_state', detail: 'Cannot cancel an order that is paid.' });
      await request(url).post(path).expect(401);
    });

    it('returns 409 cancel_limit_reached, never retryable, if the buyer has reached the limit', async () => {
      const url = await cancelling({ outcome: 'cancel_limit_reached' });
      const { body } = await request(url).post(path).set('authorization', bearer()).expect(409);
      expect(body).to.include({ code: 'cancel_limit_reached', retryable: false });
    });

    it('returns 404 for a foreign or absent order [S4]', async () => {
      const url = await cancelling({ outcome: 'not_found' });
      const { body } = await request(url).post(path).set('authorization', bearer()).expect(404);
      expect(body).to.include({ code: 'order_not_found' });
    });
  });

  describe('POST webhook', () => {
    const path = '/v1/payments/webhook';
    const secret = 'a-webhook-secret-of-more-than-32-bytes';
    const payment = { paymentId: 'p1', amountCents: 1998, currency: 'EUR' };
    const event = { eventId: 'e1', type: 'payment.succeeded', orderId: '99', ...payment, live: true };
    let reported: [string, Payment][];
    let resolved: string[];
    /** Calls that moved the money of orders. */
    let moved: string[];
    let fits: 'known' | 'recorded' | 'does_not_fit';
    let outcome: PayOutcome;
    let cases: MemoryPaymentCases;

    beforeEach(() => {
      reported = [];
      resolved = [];
      moved = [];
      fits = 'does_not_fit';
      outcome = 'paid';
      const stored = { orderId: '99', amountCents: 1998, refund: null };
      const payments = new Map(['p1', 'pi_1', 'pi_refunded'].map((paymentId) => [paymentId, { paymentId, ...stored }]));
      cases = new MemoryPaymentCases({ payments }, partial({ nowMs: () => AT_MS }));
    });
    const found = () => cases.rows.map(({ kind, subject, orderId, state }) => `${kind} ${subject} ${orderId} ${state}`);
    const listen = (
      report?: () => Promise<PayOutcome>,
      overrides: Partial<HttpServices> = {},
      mode: 'live' | 'test' = 'live',
      format: PaymentWebhook = { header: PAYMENT_SIGNATURE, read: readPaymentEvent },
    ): Promise<string> =>
      serve({
        ...overrides,
        webhook: {
          verifier: createWebhookVerifier([secret], () => AT_MS),
          ...format,
          mode,
          pay: (orderId, payment) => {
            reported.push([orderId, payment]);
            return report ? report() : Promise.resolve(outcome);
          },
          resolve: (orderId) => {
            resolved.push(orderId);
            return Promise.resolve();
          },
          money: {
            refundedElsewhere: async (refunded) => {
              moved.push(`refunded ${refunded.paymentId} ${refunded.amountCents} ${refunded.currency}`);
              if (fits === 'does_not_fit') await cases.note(refunded);
              return fits;
            },
            cameBack: async (...asked) => moved.push(`came back ${asked.join(' ')}`) > 0,
            disputed: async (dispute, word, state) => {
              moved.push(`disputed ${dispute.paymentId} ${dispute.amountCents} ${word} ${dispute.subject}`);
              await cases.note(dispute, state);
            },
          },
          isRefund: (paymentId) => Promise.resolve(paymentId === 'pi_refunded'),
          cases,
        },
      });
    const post = (url: string, body: string, signature = signWebhook(secret, body, AT_MS)) =>
      request(url).post(path).set('content-type', 'application/json').set('payment-signature', signature).send(body);

    it('returns 200 with the result of a signed payment, without any token', async () => {
      const url = await listen();
      const { body } = await post(url, JSON.stringify(event)).expect(200);
      expect(body).to.deep.equal({ outcome: 'paid', orderId: '99', paymentId: 'p1' });
      expect(reported).to.deep.equal([['99', payment]]);
      outcome = 'refund_due';
      expect((await post(url, JSON.stringify(event)).expect(200)).body).to.include({ outcome: 'refund_due' });
      expect(fake.counted).to.deep.equal(['payment paid', 'payment refund_due']);
    });

    it('returns 401 and records nothing if the signature of a message is missing, wrong or stale', async () => {
      const url = await listen();
      const body = JSON.stringify(event);
      await request(url).post(path).set('content-type', 'application/json').send(body).expect(401);
      for (const signature of [
        signWebhook('another-secret-of-more-than-32-bytes', body, AT_MS),
        signWebhook(secret, `${body} `, AT_MS),
        't=1,v1=00',
      ]) {
        const { body: problem } = await post(url, body, signature).expect(401);
        expect(problem).to.include({ code: 'bad_signature', retryable: false });
      }
      const stale = await post(url, body, signWebhook(secret, body, AT_MS - 301_000)).expect(401);
      expect(stale.body.detail).to.contain('too far from now');
      expect(reported).to.deep.equal([]);
    });

    it('returns 401 before the body arrives if the header has no signature', async () => {
      await listen();
      const head = ['POST /v1/payments/webhook HTTP/1.1', 'Host: x', 'Content-Type: application/json'];
      for (const signature of ['', 'Payment-Signature: t=1,v1=00\r\n', 'Payment-Signature: t=1893456000\r\n']) {
        const client = await RawClient.to((server as Started).port);
        const answer = await client.say(...head, `Content-Length: 60000\r\n${signature}`, '').answer();
        expect(answer?.status, signature).to.equal(401);
        client.socket.destroy();
      }
    });

    it('returns 400 with the reason if a signed body is not a payment [S6]', async () => {
      const url = await listen();
      const bodies = ['', '{', '[]', 'null', '{"type":7}', '{"type":"payment.succeeded"}'];
      for (const part of [
        { paymentId: '' },
        { paymentId: 'a b' },
        { orderId: 99 },
        { orderId: '0' },
        { amountCents: -1 },
        { amountCents: 1.5 },
        { amountCents: '1998' },
        { currency: undefined },
        { currency: 'eur' },
        { currency: 'EURO' },
        { live: undefined },
        { live: 'true' },
      ]) {
        bodies.push(JSON.stringify({ ...event, ...part }));
      }
      for (const body of bodies) {
        const answer = await post(url, body).expect(400);
        expect(answer.body, body).to.include({ code: 'bad_request' });
      }
      expect(reported).to.deep.equal([]);
      expect(fake.bugs).to.deep.equal([]);
    });

    it('refuses an id that is a number, and logs all its digits', async () => {
      const claims: object[] = [];
      const log = { ...silentLog, error: (fields: object) => void claims.push(fields) };
      const url = await listen(undefined, { log });
      const body = JSON.stringify({ ...event, orderId: 'x' }).replace('"x"', ' 1234567890123456789');
      expect((await post(url, body).expect(400)).body.detail).to.equal('orderId must be a whole number.');
      expect(claims[0]).to.include({ orderId: '1234567890123456789', paymentId: 'p1' });
      expect(reported).to.deep.equal([]);
    });

    it('logs an error with the details only for money that cannot be recorded', async () => {
      const errors: [object, string][] = [];
      const log = { ...silentLog, error: (fields: object, message: string) => void errors.push([fields, message]) };
      const url = await listen(undefined, { log });
      for (outcome of ['not_found', 'payment_conflict', 'paid', 'refund_due'] as const) {
        await post(url, JSON.stringify(event));
      }
      await post(url, JSON.stringify({ ...event, paymentId: 'a b' })).expect(400);
      await post(url, 'null').expect(400);
      await post(url, '{').expect(400);
      await post(url, JSON.stringify({ type: 'payment.failed' }));
      await post(url, '{', 't=1,v1=00').expect(401);
      const money = { orderId: '99', ...payment };
      expect(errors.map(([fields]) => fields)).to.deep.equal([
        { ...money, outcome: 'not_found' },
        { ...money, outcome: 'payment_conflict' },
        { ...money, live: true, paymentId: 'a b', outcome: 'unreadable', detail: 'paymentId must be a payment id.' },
        {
          orderId: undefined,
          paymentId: undefined,
          amountCents: undefined,
          currency: undefined,
          live: undefined,
          outcome: 'unreadable',
          detail: 'The body must be an object with a type.',
        },
        { outcome: 'unreadable', detail: 'The body is not JSON: it ends too early, at line 1, column 2.' },
      ]);
      expect(new Set(errors.map(([, message]) => message))).to.have.all.keys(
        'money was taken that cannot be recorded; ask the provider',
      );
      const sha = (body: string) => createHash('sha256').update(body).digest('hex');
      expect(found()).to.deep.equal([
        'unrecorded p1 99 closed',
        `unrecorded ${sha(JSON.stringify({ ...event, paymentId: 'a b' }))} 99 open`,
        `unrecorded ${sha('null')} null open`,
        `unrecorded ${sha('{')} null open`,
      ]);
    });

    it('opens one well-formed case for any signed payment that cannot be recorded', async () => {
      const url = await listen();
      const claim = fc.oneof(
        fc.string(),
        fc.integer(),
        fc.constant(null),
        fc.constant('1998'),
        fc.object({ maxDepth: 1 }),
      );
      await fc.assert(
        fc.asyncProperty(
          fc.record({ paymentId: claim, orderId: claim, amountCents: claim, currency: claim }, { requiredKeys: [] }),
          async (claims) => {
            cases.rows.length = 0;
            const body = JSON.stringify({ type: 'payment.succeeded', live: true, ...claims });
            for (let i = 0; i < 2; i++)
              await post(url, body).expect((answer) => expect(answer.status).to.be.oneOf([200, 400]));
            for (const { paymentId, orderId, amountCents, currency, detail } of cases.rows) {
              expect(paymentId ?? 'p').to.match(PAYMENT_ID);
              expect(orderId ?? '1').to.match(/^[1-9][0-9]{0,18}$/);
              expect(amountCents ?? 0).to.satisfy(Number.isSafeInteger);
              expect(currency ?? 'EUR').to.match(/^[A-Z]{3}$/);
              expect(detail).to.contain('the report says');
            }
            expect(cases.rows.length).to.equal(reported.length > 0 ? 0 : 1);
            reported = [];
          },
        ),
        { numRuns: 60 },
      );
    });

    it('returns 422 and records nothing for a payment in the other mode', async () => {
      const logged: string[] = [];
      const noted = (level: string) => (fields: object) => void logged.push(`${level} ${JSON.stringify(fields)}`);
      const log = { ...silentLog, error: noted('error'), warn: noted('warn') };
      const url = await listen(undefined, { log });
      const trial = await post(url, JSON.stringify({ ...event, live: false })).expect(422);
      expect(trial.body).to.include({ code: 'wrong_payment_mode', retryable: false });
      await server?.stop();
      const testing = await listen(undefined, { log }, 'test');
      await post(testing, JSON.stringify(event)).expect(422);
      expect(reported).to.deep.equal([]);
      await post(testing, JSON.stringify({ ...event, live: false })).expect(200);
      expect(reported).to.deep.equal([['99', payment]]);
      expect(logged.map((line) => line.split(' ')[0])).to.deep.equal(['warn', 'error']);
      expect(found()).to.deep.equal(['unrecorded p1 99 closed']);
    });

    it('ignores the payment of an order in another cell', async () => {
      const url = await listen(undefined, { cell: 2 });
      expect((await post(url, JSON.stringify(event)).expect(200)).body).to.deep.equal({ outcome: 'ignored' });
      expect(reported).to.deep.equal([]);
      expect(found()).to.deep.equal([]);
    });

    it('accepts and ignores another type of event', async () => {
      const url = await listen();
      const body = JSON.stringify({ type: 'payment.created', anything: [1] });
      expect((await post(url, body).expect(200)).body).to.deep.equal({ outcome: 'ignored' });
      expect(reported).to.deep.equal([]);
    });

    it('asks the provider about a change, and opens a case if a refund fails', async () => {
      const errors: unknown[] = [];
      const log = { ...silentLog, error: (...said: unknown[]) => void errors.push(said) };
      const { STRIPE_WEBHOOK } = await loadStripe();
      const url = await listen(undefined, { log }, 'live', { ...STRIPE_WEBHOOK, header: 'payment-signature' });
      const about = (type: string, object: object) =>
        JSON.stringify({ type, livemode: true, data: { object: { ...object } } });
      const failed = about('payment_intent.payment_failed', { metadata: { order: '99', attempt: 'k1' } });
      expect((await post(url, failed).expect(200)).body).to.deep.equal({ outcome: 'noted', orderId: '99' });
      expect(resolved).to.deep.equal(['99']);
      const refund = about('refund.failed', { id: 're_1', status: 'failed', payment_intent: 'pi_1' });
      expect((await post(url, refund).expect(200)).body).to.deep.equal({ outcome: 'noted', paymentId: 'pi_1' });
      expect(errors).to.have.length(1);
      expect(found()).to.deep.equal(['refund_failed re_1 99 open']);
      const ofAnother = about('refund.failed', { id: 're_2', status: 'failed', payment_intent: 'pi_2' });
      expect((await post(url, ofAnother).expect(200)).body).to.deep.equal({ outcome: 'ignored' });
      expect(errors, 'no payment is recorded here').to.have.length(1);
    });

    describe('unexpected money [P3]', () => {
      const stripe = async () => {
        const { STRIPE_WEBHOOK } = await loadStripe();
        const url = await listen(undefined, {}, 'live', { ...STRIPE_WEBHOOK, header: 'payment-signature' });
        return async (type: string, object: object) => {
          const answer = await post(url, JSON.stringify({ type, livemode: true, data: { object } })).expect(200);
          return (answer.body as { outcome: string }).outcome;
        };
      };

      it('opens a case for a refund in the dashboard, but not for our own refund', async () => {
        const tell = await stripe();
        const charge = { id: 'ch_1', payment_intent: 'pi_1', amount_refunded: 500, currency: 'eur' };
        for (let i = 0; i < 2; i++) expect(await tell('charge.refunded', charge)).to.equal('noted');
        expect(found()).to.deep.equal(['refunded_elsewhere pi_1 99 open']);
        expect(cases.rows[0]).to.include({ amountCents: 500, detail: 'refunded at the provider: 5.00 EUR' });
        await cases.close('1', 'boss');
        await tell('charge.refunded', charge);
        expect(cases.rows[0]?.state, 'nothing new').to.equal('closed');
        await tell('charge.refunded', { ...charge, amount_refunded: 1998 });
        expect(cases.rows[0], 'more was given back').to.include({ state: 'open', amountCents: 1998 });
        for (const payment_intent of ['pi_refunded', 'pi_of_others', null])
          expect(await tell('charge.refunded', { ...charge, payment_intent })).to.equal('ignored');
        expect(cases.rows).to.have.length(1);
      });

      it('refunds the order and opens no case if the dashboard refund fits', async () => {
        const tell = await stripe();
        const charge = { id: 'ch_1', payment_intent: 'pi_1', amount_refunded: 500, currency: 'eur' };
        for (fits of ['recorded', 'known'] as const) expect(await tell('charge.refunded', charge)).to.equal('noted');
        expect(moved).to.deep.equal(Array(2).fill('refunded pi_1 500 EUR'));
        expect(found()).to.deep.equal([]);
      });

      it('moves the order that a failed refund or a dispute names', async () => {
        const tell = await stripe();
        const refund = { id: 're_1', status: 'failed', payment_intent: 'pi_1', failure_reason: 'closed' };
        await tell('refund.failed', { ...refund, metadata: { refund: '77' } });
        const dispute = { id: 'du_1', payment_intent: 'pi_1', amount: 1998, currency: 'eur', reason: 'fraudulent' };
        for (const status of ['needs_response', 'lost', 'won'])
          await tell('charge.dispute.updated', { ...dispute, status });
        await server?.stop();
        const url = await listen();
        const ours = { paymentId: 'p1', refundId: '78', detail: 'closed', live: true };
        await post(url, JSON.stringify({ type: 'refund.failed', ...ours })).expect(200);
        const lost = { disputeId: 'd1', detail: 'fraudulent', isOver: false, isLost: true, live: true };
        await post(url, JSON.stringify({ type: 'payment.disputed', ...payment, ...lost })).expect(200);
        expect(moved).to.deep.equal([
          'came back pi_1 77 closed',
          'disputed pi_1 1998 open du_1',
          'disputed pi_1 1998 lost du_1',
          'disputed pi_1 1998 won du_1',
          'came back p1 78 closed',
          `disputed p1 ${payment.amountCents} lost d1`,
        ]);
      });

      it('keeps a dispute as one case until it is won', async () => {
        const tell = await stripe();
        const dispute = { id: 'du_1', payment_intent: 'pi_1', amount: 1998, currency: 'eur', reason: 'fraudulent' };
        await tell('charge.dispute.created', { ...dispute, status: 'needs_response' });
        await tell('charge.dispute.funds_withdrawn', { ...dispute, status: 'needs_response' });
        expect(cases.rows[0]).to.include({ amountCents: 1998, currency: 'EUR', detail: 'fraudulent: needs_response' });
        await tell('charge.dispute.closed', { ...dispute, status: 'lost' });
        expect(found()).to.deep.equal(['disputed du_1 99 open']);
        await tell('charge.dispute.closed', { ...dispute, status: 'won' });
        expect(found()).to.deep.equal(['disputed du_1 99 closed']);
      });

      it('opens a case for a report in our own format', async () => {
        const url = await listen();
        const money = { ...payment, live: true };
        const tell = async (said: object) => (await post(url, JSON.stringify(said)).expect(200)).body as object;
        const answer = { outcome: 'noted', paymentId: 'p1' };
        expect(await tell({ type: 'payment.refunded', ...money })).to.deep.equal(answer);
        const dispute = { disputeId: 'd1', detail: 'fraudulent', isOver: false };
        expect(await tell({ type: 'payment.disputed', ...money, ...dispute })).to.deep.equal(answer);
        const refund = { paymentId: 'p1', detail: 'the card was closed', live: true };
        expect(await tell({ type: 'refund.failed', ...refund })).to.deep.equal(answer);
        expect(found()).to.deep.equal([
          'refunded_elsewhere p1 99 open',
          'disputed d1 99 open',
          'refund_failed p1 99 open',
        ]);
      });
    });

    it('returns 413 or 415 if the body is too large or its type is not JSON', async () => {
      const url = await listen();
      await post(url, JSON.stringify({ ...event, note: 'x'.repeat(70_000) })).expect(413);
      await request(url).post(path).set('content-type', 'text/plain').send('{}').expect(415);
    });

    it('returns 404 for an unknown order, 409 for a wrong payment, and 503 without MySQL', async () => {
      const url = await listen();
      outcome = 'not_found';
      expect((await post(url, JSON.stringify(event)).expect(404)).body).to.include({ code: 'order_not_found' });
      outcome = 'payment_conflict';
      expect((await post(url, JSON.stringify(event)).expect(409)).body).to.include({ code: 'payment_conflict' });
      outcome = 'coupon_missing';
      const detail = 'The order costs more, and its buyer has no coupon that leaves this amount.';
      expect((await post(url, JSON.stringify({ ...event, paymentId: 'p2' })).expect(409)).body).to.include({ detail });
      expect((await cases.list({}, { max: 9 })).at(-1)).to.include({ kind: 'unrecorded', subject: 'p2' });
      await server?.stop();
      const broken = await listen(() => Promise.reject(down));
      await post(broken, JSON.stringify(event)).expect(503).expect('retry-after', '1');
    });

    it('accepts nothing if no secret is set', async () => {
      const url = await serve();
      const { body } = await post(url, JSON.stringify(event)).expect(501);
      expect(body).to.include({ code: 'payment_not_configured' });
    });
  });
});
