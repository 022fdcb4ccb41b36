import { expect } from 'chai';
import { isId } from '../../../src/core/ids.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';

const PRICE = { amountCents: 100, currency: 'EUR' };

describe('payment simulator', () => {
  const simulator = createPaymentSimulator();

  it('marks every payment id as simulated and makes one payment per order and key', async () => {
    const charges = await Promise.all(
      [1, 2].map(() => createPaymentSimulator().charge('99', { amountCents: 1998, currency: 'EUR' }, 'k1')),
    );
    expect(charges[0]).to.deep.equal(charges[1]);
    const [charge] = charges;
    if (charge?.outcome !== 'succeeded') throw new Error(`charge: ${charge?.outcome}`);
    expect(charge.payment).to.include({ amountCents: 1998, currency: 'EUR' });
    const { paymentId } = charge.payment;
    const price = { amountCents: 1998, currency: 'EUR' };
    expect(await simulator.lookUp('99', price, 'k1')).to.deep.include({ payment: { paymentId, ...price } });
    expect(charge.payment.paymentId).to.match(/^simulated-/);
    expect(isId(charge.payment.paymentId), 'fits its column').to.equal(true);
  });

  it('declines the charge, or loses the answer, for fixed keys', async () => {
    for (let i = 0; i < 2; i++) {
      expect(await simulator.charge('99', PRICE, 'decline-1')).to.deep.equal({ outcome: 'declined' });
      expect(await simulator.charge('99', PRICE, 'unknown-1')).to.deep.equal({ outcome: 'unknown' });
    }
  });

  const refund = (paymentId: string) => createPaymentSimulator().refund(paymentId, 100, paymentId);

  it('refunds its own charges, except for payments that request a failure', async () => {
    const charge = await simulator.charge('99', PRICE, 'k1');
    if (charge.outcome !== 'succeeded') throw new Error(`charge: ${charge.outcome}`);
    expect(await refund(charge.payment.paymentId)).to.deep.equal({ outcome: 'refunded' });
    expect(await refund('simulated-decline-1')).to.deep.equal({ outcome: 'refused', detail: 'simulated' });
    expect(await refund('simulated-unknown-1')).to.deep.equal({ outcome: 'unknown' });
  });

  it('never reports real money as refunded', async () => {
    for (const paymentId of ['p1', 'pi_3Mt', 'unknown-1', 'x-simulated-1']) {
      expect(await refund(paymentId)).to.deep.equal({ outcome: 'refused', detail: 'not a simulated payment' });
    }
  });
});
