import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { expectInvariants } from '../helpers/invariants.js';
import { CARD, STRIPE_KEY, STRIPE_SECRET, StripeStandIn } from '../helpers/stripe-stand-in.js';
import { useSystem } from '../helpers/system.js';

describe('orders paid through Stripe or a stand-in', () => {
  const stripe = new StripeStandIn();
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    const env = {
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
    const pay = (paymentMethod?: string): Promise<Answer> =>
      ask(`${api.url}/v1/orders/${orderId}/pay`, {
        method: 'POST',
        token: buyers.token(userId),
        ...(paymentMethod === undefined ? {} : { body: { paymentMethod } }),
        timeoutMs: 25_000,
      });
    return { saleId, buyers, orderId, pay };
  }
  const report = (type: string, orderId: string): Promise<Answer> => {
    const { body, signature } = stripe.event(type, intentOf(orderId));
    const headers = { 'Stripe-Signature': signature };
    return ask(`${api.url}/v1/payments/webhook`, { method: 'POST', headers, body: JSON.parse(body) as object });
  };

  it('are paid by the webhook after the customer confirms at the bank', async () => {
    const { saleId, buyers, orderId, pay } = await orderOf('ann');
    expect(brief(await pay())).to.equal('422 payment_method_needed');
    const asked = await pay(CARD.asks);
    expect(brief(asked)).to.equal('202 action_needed');
    const intent = intentOf(orderId);
    expect(asked.json.clientSecret).to.equal(intent.client_secret);
    stripe.finishAction(intent.id, 'confirmed');
    for (let i = 0; i < 2; i++) expect(brief(await report('payment_intent.succeeded', orderId))).to.equal('200 paid');
    expect(brief(await pay(CARD.asks))).to.equal('200 paid');
    expect(brief(await report('payment_intent.payment_failed', orderId)), 'late').to.equal('200 noted');
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });

  it('leave no key or secret in the log', () => {
    for (const { log } of system.programs.all) expect(log).not.to.match(/sk_test_|whsec_|_secret_/);
  });
});
