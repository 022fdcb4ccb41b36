import { expect } from 'chai';
import type { Sale } from '../../src/core/sale.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale, type SaleParts } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

describe('one purchase, from click to order', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([
      programs.start('api'),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500' } }),
    ]);
  });

  const newSale = async (parts: SaleParts): Promise<{ sale: Sale; buyers: Buyers }> => {
    const sale = await openSale(system.stack, parts);
    return { sale, buyers: new Buyers(sale.saleId, system.stack.env.JWT_SECRET, () => [api.url]) };
  };
  const brief = (answer: Answer | null): string => `${answer?.status} ${answer?.json.code ?? answer?.json.status}`;

  it('is answered 202 pending and becomes the order that its buyer can read', async () => {
    const { sale, buyers } = await newSale({ stock: 5, limitPerBuyer: 2, priceCents: 250 });

    const bought = await buyers.buy('ann', { requestId: 'click-1', quantity: 2 });
    expect(bought?.status).to.equal(202);
    expect(bought?.json).to.deep.equal({ requestId: 'click-1', status: 'pending' });
    expect(bought?.headers.location).to.equal(`/v1/sales/${sale.saleId}/purchases/click-1`);

    const status = await buyers.settled('ann', 'click-1');
    expect(brief(status)).to.equal('200 ordered');
    const order = await buyers.order('ann', String(status.json.orderId));
    expect(order.status).to.equal(200);
    expect(order.json).to.include({
      orderId: status.json.orderId,
      saleId: sale.saleId,
      requestId: 'click-1',
      quantity: 2,
      amountCents: 500,
      state: 'pending_payment',
      reason: null,
      paidAt: null,
      refundedCents: 0,
    });
    const windowMs = Date.parse(String(order.json.expiresAt)) - Date.parse(String(order.json.createdAt));
    expect(windowMs, 'time to pay, counted from just before the row was written').to.be.within(899_000, 900_000);
    const figures = await expectInvariants(system.stack, sale.saleId, buyers.opLog);
    expect(figures).to.include({ sold: 2, unitsLeft: 3, liveRows: 1 });
  });

  it('answers a long poll with pending when the requested time is over', async () => {
    const { buyers } = await newSale({ stock: 5 });
    const [worker] = system.programs.running.filter(({ name }) => name === 'worker');
    worker?.signal('SIGSTOP');
    try {
      await buyers.buy('bob');
      const pollMs = performance.now();
      expect(brief(await buyers.status('bob', 'k1', 1))).to.equal('200 pending');
      expect(performance.now() - pollMs).to.be.at.least(900);
    } finally {
      worker?.signal('SIGCONT');
    }
    expect(brief(await buyers.settled('bob'))).to.equal('200 ordered');
  });

  it('is the same purchase when the key is repeated, before and after the order [S1]', async () => {
    const { sale, buyers } = await newSale({ stock: 5 });
    const clicks = await Promise.all(Array.from({ length: 20 }, () => buyers.buy('ann', { requestId: 'same' })));
    for (const click of clicks) {
      expect(click?.status).to.be.oneOf([200, 202]);
      expect(click?.json.requestId).to.equal('same');
    }
    const { orderId } = (await buyers.settled('ann', 'same')).json;
    const again = await buyers.buy('ann', { requestId: 'same' });
    expect(again?.status).to.equal(200);
    expect(again?.json).to.include({ requestId: 'same', status: 'ordered', orderId });
    expect(await expectInvariants(system.stack, sale.saleId, buyers.opLog)).to.include({ rows: 1, unitsLeft: 4 });
  });

  it('is refused with 422 and stays unchanged if its key is repeated with another quantity [S2]', async () => {
    const { sale, buyers } = await newSale({ stock: 5, limitPerBuyer: 3 });
    const first = await buyers.buy('ann', { quantity: 1 });
    const [before, after] = [await buyers.buy('ann', { quantity: 2 }), await buyers.settled('ann')];
    const late = await buyers.buy('ann', { quantity: 2 });

    expect([brief(first), brief(before), brief(after), brief(late)]).to.deep.equal([
      '202 pending',
      '422 request_conflict',
      '200 ordered',
      '422 request_conflict',
    ]);
    expect(await expectInvariants(system.stack, sale.saleId, buyers.opLog)).to.include({ rows: 1, sold: 1 });
  });

  it('is separate from a purchase in another sale with the same key [S3]', async () => {
    const [one, two] = [await newSale({ stock: 5 }), await newSale({ stock: 5 })];
    for (const { buyers } of [one, two]) expect(brief(await buyers.buy('ann'))).to.equal('202 pending');
    for (const { buyers } of [one, two]) expect(brief(await buyers.settled('ann'))).to.equal('200 ordered');
    for (const { sale, buyers } of [one, two]) {
      expect(await expectInvariants(system.stack, sale.saleId, buyers.opLog)).to.include({ rows: 1, sold: 1 });
    }
  });

  it('belongs to the buyer in the token, and is not found by another buyer [S4]', async () => {
    const { sale, buyers } = await newSale({ stock: 5 });
    await buyers.buy('ann');
    const { orderId } = (await buyers.settled('ann')).json;

    expect(brief(await buyers.order('eve', String(orderId)))).to.equal('404 order_not_found');
    expect(brief(await buyers.status('eve', 'k1'))).to.equal('404 purchase_not_found');
    const forged = await ask(`${api.url}/v1/sales/${sale.saleId}/purchases`, {
      method: 'POST',
      token: buyers.token('eve'),
      headers: { 'Idempotency-Key': 'k1' },
      body: { quantity: 1, userId: 'ann' },
    });
    expect(brief(forged)).to.equal('400 bad_request');
    expect(await expectInvariants(system.stack, sale.saleId, buyers.opLog)).to.include({ rows: 1, sold: 1 });
  });

  it('counts its units towards the limit per buyer, over all purchases of the buyer', async () => {
    const { sale, buyers } = await newSale({ stock: 10, limitPerBuyer: 2 });
    expect(brief(await buyers.buy('ann', { requestId: 'a', quantity: 3 }))).to.equal('409 limit_reached');
    expect(brief(await buyers.buy('ann', { requestId: 'b', quantity: 1 }))).to.equal('202 pending');
    expect(brief(await buyers.buy('ann', { requestId: 'c', quantity: 2 }))).to.equal('409 limit_reached');
    expect(brief(await buyers.buy('ann', { requestId: 'd', quantity: 1 }))).to.equal('202 pending');
    expect(brief(await buyers.buy('ann', { requestId: 'e', quantity: 1 }))).to.equal('409 limit_reached');
    expect(await expectInvariants(system.stack, sale.saleId, buyers.opLog)).to.include({ rows: 2, sold: 2 });
  });

  it('is confirmed again to its buyer after the sale is sold out', async () => {
    const { sale, buyers } = await newSale({ stock: 1 });
    expect(brief(await buyers.buy('ann'))).to.equal('202 pending');
    await buyers.settled('ann');
    // so many that refusals come from memory instead of Redis
    for (let i = 0; i < 30; i++) expect(brief(await buyers.buy(`loser-${i}`))).to.equal('409 sold_out');
    expect(brief(await buyers.buy('ann'))).to.equal('200 ordered');
    expect(brief(await buyers.buy('ann', { requestId: 'k2' }))).to.equal('409 limit_reached');
    expect(await expectInvariants(system.stack, sale.saleId, buyers.opLog)).to.include({ rows: 1, unitsLeft: 0 });
  });

  it('can use units that were returned', async () => {
    const { sale, buyers } = await newSale({ stock: 1 });
    await buyers.buy('ann');
    const { orderId } = (await buyers.settled('ann')).json;
    expect(brief(await buyers.buy('bob'))).to.equal('409 sold_out');

    await cancelByHand(sale.saleId, String(orderId), 'ann');
    await until('the units are back', async () => {
      const snapshot = await system.stack.audit.store.snapshot({ saleId: sale.saleId, bucket: 0 });
      return snapshot?.unitsLeft === 1;
    });
    await until('they are sold again', async () => (await buyers.buy('bob'))?.status === 202);
    const again = await buyers.buy('ann');
    expect(again?.json, 'the end of the order').to.include({ status: 'ordered', orderId, orderState: 'cancelled' });
    const figures = await expectInvariants(system.stack, sale.saleId, buyers.opLog);
    expect(figures).to.include({ rows: 2, liveRows: 1, sold: 1 });
  });

  /** Commits the writes of a cancellation: ends the row, lowers `sold`, and promises the release in the outbox. */
  async function cancelByHand(saleId: string, orderId: string, userId: string): Promise<void> {
    const release = { saleId, bucket: 0, userId, requestId: 'k1', orderId, batchId: '', withUnits: true };
    await system.stack.mysql.transaction(async (tx) => {
      await tx.execute("UPDATE orders SET state = 'cancelled' WHERE id = ?", [orderId]);
      const payload = JSON.stringify([release]);
      await tx.execute("INSERT INTO outbox (kind, `key`, payload) VALUES ('release', 'by-hand', ?)", [payload]);
      await tx.execute('UPDATE sales SET sold = sold - 1 WHERE id = ?', [saleId]);
    });
  }
});
