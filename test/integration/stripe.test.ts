import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { expectInvariants } from '../helpers/invariants.js';
import { CARD, STRIPE_KEY, STRIPE_SECRET, StripeStandIn } from '../helpers/stripe-stand-in.js';
import { useSystem } from '../helpers/system.js';

describe('orders paid through Stripe or a stand-in', () => {
  const stripe = new StripeStandIn();
  let api: Program;
  let env: Record<string, string>;
  const system = useSystem(async ({ programs }) => {
    env = {
      PAYMENT_PROVIDER: 'stripe',
      PAYMENT_API_KEY: STRIPE_KEY,
      PAYMENT_API_URL: await stripe.start(),
      PAYMENT_WEBHOOK_SECRET: STRIPE_SECRET,
      PAYMENT_WEBHOOK_MODE: 'test',
    };
    [api] = await Promise.all([
      programs.start('api', { env }),
      programs.start('worker'),
      programs.start('keeper', { env: { ...env, KEEPER_EVERY_MS: '500' } }),
    ]);
  });
  after(() => stripe.stop());

  const brief = ({ status, json }: Answer): string => `${status} ${String(json.code ?? json.state ?? json.outcome)}`;
  const intentOf = (orderId: string) =>
    [...stripe.intents.values()].find(({ metadata }) => metadata.order === orderId) ?? expect.fail('no intent');
  async function orderOf(userId: string) {
    const { saleId } = await openSale(system.stack, { stock: 5, priceCents: 1250 });
    const buyers = new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
    expect((await buyers.buy(userId))?.status).to.equal(202);
    const orderId = String((await buyers.status(userId, 'k1', 20)).json.orderId);
    const move = (verb: 'pay' | 'cancel', paymentMethod?: string): Promise<Answer> =>
      ask(`${api.url}/v1/orders/${orderId}/${verb}`, {
        method: 'POST',
        token: buyers.token(userId),
        ...(paymentMethod === undefined ? {} : { body: { paymentMethod } }),
        timeoutMs: 25_000,
      });
    return { saleId, buyers, orderId, move };
  }
  const report = (type: string, orderId: string): Promise<Answer> => {
    const { body, signature } = stripe.event(type, intentOf(orderId));
    const headers = { 'Stripe-Signature': signature };
    return ask(`${api.url}/v1/payments/webhook`, { method: 'POST', headers, body: JSON.parse(body) as object });
  };

  it('are paid by the webhook after the customer confirms at the bank', async () => {
    const { saleId, buyers, orderId, move } = await orderOf('ann');
    expect(brief(await move('pay'))).to.equal('422 payment_method_needed');
    const asked = await move('pay', CARD.asks);
    expect(brief(asked)).to.equal('202 action_needed');
    const intent = intentOf(orderId);
    expect(asked.json.clientSecret).to.equal(intent.client_secret);
    stripe.finishAction(intent.id, 'confirmed');
    for (let i = 0; i < 2; i++) expect(brief(await report('payment_intent.succeeded', orderId))).to.equal('200 paid');
    expect(brief(await move('pay', CARD.asks))).to.equal('200 paid');
    expect(brief(await report('payment_intent.payment_failed', orderId)), 'late').to.equal('200 noted');
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });

  it('are refunded by the keeper if the answer to the charge is lost and the order has ended', async () => {
    const { saleId, buyers, orderId, move } = await orderOf('bob');
    stripe.break(/confirm/, 'slow');
    expect(brief(await move('pay', CARD.good))).to.equal('503 outcome_unknown');
    expect(brief(await move('cancel'))).to.equal('200 cancelled');
    const { id } = intentOf(orderId);
    const isBack = (): boolean => [...stripe.refunds.values()].some((one) => one.payment_intent === id);
    await until('the money goes back', isBack);
    const refund = { amountCents: 1250, state: 'refunded', reason: 'order_cancelled' };
    const isNoted = async (): Promise<boolean> =>
      JSON.stringify((await buyers.order('bob', orderId)).json.refunds) === JSON.stringify([refund]);
    await until('the buyer sees it', isNoted);
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });

  it('make a program end at once, with a hint, if Stripe refuses its key', async () => {
    const bad = { ...env, PAYMENT_API_KEY: 'sk_test_of_somebody_else' };
    for (const name of ['api', 'keeper'] as const) {
      await system.programs.start(name, { env: bad }).then(
        () => expect.fail('it has started'),
        () => undefined,
      );
      const { log } = system.programs.all.at(-1) ?? expect.fail('no program');
      expect(log).to.contain('Stripe refuses PAYMENT_API_KEY (401): copy the secret key');
      expect(log).not.to.contain('somebody_else');
    }
  });

  it('leave no key or secret in the log', () => {
    for (const { log } of system.programs.all) expect(log).not.to.match(/sk_test_|whsec_|_secret_/);
  });
});
