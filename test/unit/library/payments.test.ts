import { expect } from 'chai';
import { loadConfig } from '../../../src/core/config/load.js';
import type {
  ChargeOutcome,
  PaymentProvider,
  PaymentWebhook,
  Price,
} from '../../../src/core/ports/payment-provider.js';
import { paymentsOf } from '../../../src/library/payments.js';
import { silentLog as log } from '../../helpers/silent-log.js';

const PRICE = { amountCents: 100, currency: 'EUR' };

class Bank implements PaymentProvider {
  readonly needsMethod = true;
  readonly #asked: unknown[] = [];

  charge(orderId: string, price: Price, key: string, method?: string): Promise<ChargeOutcome> {
    this.#asked.push([orderId, price, key, method]);
    return Promise.resolve({ outcome: 'declined' });
  }
  async lookUp() {
    return { outcome: 'not_found' } as const;
  }
  async refund() {
    return { outcome: 'refunded' } as const;
  }
  get asked(): readonly unknown[] {
    return this.#asked;
  }
}

describe('payments of an app', () => {
  const configOf = (PAYMENT_PROVIDER: string) => loadConfig(['payment'], { PAYMENT_PROVIDER }).payment;
  const webhook: PaymentWebhook = { header: 'bank-signature', read: () => ({ type: 'other' }) };

  it('take precedence over PAYMENT_PROVIDER, and report in our format without a webhook of their own', async () => {
    const bank = new Bank();
    const payments = await paymentsOf({ payments: bank }, configOf('simulator'), log);
    expect([payments?.provider.needsMethod, payments?.webhook]).to.deep.equal([true, null]);
    expect(await payments?.provider.charge('99', PRICE, 'k1', 'card')).to.deep.equal({ outcome: 'declined' });
    expect(bank.asked).to.deep.equal([['99', PRICE, 'k1', 'card']]);
  });

  it('report in the format of their own webhook if the app gives a webhook', async () => {
    const payments = await paymentsOf({ payments: { provider: new Bank(), webhook } }, configOf('none'), log);
    expect(payments?.webhook).to.equal(webhook);
    expect(await payments?.provider.lookUp('99', PRICE, 'k1')).to.deep.equal({ outcome: 'not_found' });
  });

  it('fall back to the provider of the settings, or to no provider', async () => {
    expect(await paymentsOf({}, configOf('none'), log)).to.equal(null);
    const simulated = await paymentsOf({}, configOf('simulator'), log);
    expect(await simulated?.provider.charge('99', PRICE, 'decline')).to.deep.equal({ outcome: 'declined' });
  });
});
