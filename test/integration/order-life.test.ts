import { expect } from 'chai';
import { createTokenSigner } from '../../src/http/token.js';
import { signWebhook } from '../helpers/sign-webhook.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { runCommand } from '../helpers/command.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale, type SaleParts } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { found, until } from '../chaos/harness/wait.js';

const WEBHOOK_SECRET = 'a-webhook-secret-of-more-than-32-bytes';
const PAYMENT_ENV = { PAYMENT_PROVIDER: 'simulator', PAYMENT_WEBHOOK_SECRET: WEBHOOK_SECRET };

describe('the life of an order', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([
      programs.start('api', { env: PAYMENT_ENV }),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500', PAYMENT_PROVIDER: 'simulator' } }),
    ]);
  });

  async function saleWith(parts: SaleParts = {}): Promise<{ saleId: string; buyers: Buyers }> {
    const { saleId } = await openSale(system.stack, { stock: 5, ...parts });
    return { saleId, buyers: new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]) };
  }
  async function orderOf(buyers: Buyers, userId: string): Promise<string> {
    expect((await buyers.buy(userId))?.status).to.equal(202);
    const { json } = await buyers.settled(userId);
    expect(json.status).to.equal('ordered');
    return String(json.orderId);
  }
  const move = (buyers: Buyers, userId: string, orderId: string, verb: string, key?: string): Promise<Answer> => {
    const headers: Record<string, string> = key === undefined ? {} : { 'Idempotency-Key': key };
    return ask(`${api.url}/v1/orders/${orderId}/${verb}`, { method: 'POST', token: buyers.token(userId), headers });
  };
  const report = (event: object): Promise<Answer> =>
    ask(`${api.url}/v1/payments/webhook`, {
      method: 'POST' as const,
      body: event,
      headers: { 'Payment-Signature': signWebhook(WEBHOOK_SECRET, JSON.stringify(event), Date.now()) },
    });
  const money = { amountCents: 1250, currency: 'EUR', live: true };
  const brief = ({ status, json }: Answer): string => `${status} ${String(json.code ?? json.state ?? json.outcome)}`;

  it('is paid once, however often the request is repeated, and then cannot be cancelled', async () => {
    const { saleId, buyers } = await saleWith();
    const orderId = await orderOf(buyers, 'ann');
    expect(brief(await move(buyers, 'bob', orderId, 'pay'))).to.equal('404 order_not_found');
    expect(brief(await move(buyers, 'ann', orderId, 'pay', 'decline-1'))).to.equal('402 payment_declined');

    const paid = await Promise.all([1, 2, 3].map(() => move(buyers, 'ann', orderId, 'pay')));
    expect(paid.map(brief)).to.deep.equal(['200 paid', '200 paid', '200 paid']);
    expect(paid[0]?.json).to.deep.equal((await buyers.order('ann', orderId)).json);
    expect(brief(await move(buyers, 'ann', orderId, 'cancel'))).to.equal('409 wrong_state');
    const [row] = await system.stack.mysql.query<{ payments: string }>(
      "SELECT COUNT(*) AS payments FROM payments WHERE order_id = ? AND payment_id LIKE 'simulated-%'",
      [orderId],
    );
    expect(Number(row?.payments)).to.equal(1);
    expect(await expectInvariants(system.stack, saleId, buyers.opLog)).to.include({ sold: 1, unitsLeft: 4 });
  });

  it('can be cancelled, and its unit is sold again, even to the same buyer', async () => {
    const { saleId, buyers } = await saleWith({ stock: 1 });
    const orderId = await orderOf(buyers, 'ann');
    expect(brief(await move(buyers, 'bob', orderId, 'cancel'))).to.equal('404 order_not_found');
    for (let i = 0; i < 2; i++) expect(brief(await move(buyers, 'ann', orderId, 'cancel'))).to.equal('200 cancelled');
    expect(brief(await move(buyers, 'ann', orderId, 'pay'))).to.equal('409 wrong_state');

    await until('the unit is back', async () => (await buyers.buy('ann', { requestId: 'k2' }))?.status === 202);
    const again = await buyers.settled('ann', 'k2');
    expect(again.json.status).to.equal('ordered');
    const figures = await expectInvariants(system.stack, saleId);
    expect(figures).to.include({ sold: 1, unitsLeft: 0, rows: 2, liveRows: 1 });
  });

  it('is paid once by webhook, which refunds late money and opens a case for unknown orders [P3]', async () => {
    const { saleId, buyers } = await saleWith({ priceCents: 1250 });
    const [paid, cancelled] = [await orderOf(buyers, 'ann'), await orderOf(buyers, 'bob')];
    const event = { type: 'payment.succeeded', paymentId: `p-${paid}`, orderId: paid, ...money };
    const answers = await Promise.all([1, 2, 3].map(() => report(event)));
    expect(answers.map(brief)).to.deep.equal(['200 paid', '200 paid', '200 paid']);
    expect((await buyers.order('ann', paid)).json).to.include({ state: 'paid' });
    expect(brief(await move(buyers, 'ann', paid, 'pay'))).to.equal('200 paid');
    const trial = { ...event, paymentId: `t-${cancelled}`, orderId: cancelled, live: false };
    expect(brief(await report(trial))).to.equal('422 wrong_payment_mode');

    await move(buyers, 'bob', cancelled, 'cancel');
    const late = { ...event, paymentId: `simulated-${cancelled}`, orderId: cancelled };
    for (let i = 0; i < 2; i++) expect(brief(await report(late))).to.equal('200 refund_due');
    const refundsOf = async (userId: string, orderId: string): Promise<unknown> =>
      (await buyers.order(userId, orderId)).json.refunds;
    const isBack = async (): Promise<boolean> => JSON.stringify(await refundsOf('bob', cancelled)).includes('refunded');
    await until('the keeper gives it back', isBack);
    const refund = { amountCents: 1250, state: 'refunded', reason: 'order_cancelled' };
    expect([await refundsOf('bob', cancelled), await refundsOf('ann', paid)]).to.deep.equal([[refund], undefined]);
    const stolen = { ...event, paymentId: `s-${paid}`, orderId: '1' };
    for (let i = 0; i < 2; i++) expect(brief(await report(stolen))).to.equal('404 order_not_found');
    const seckill = (...args: string[]) => runCommand(['payment-cases', ...args], system.stack.env);
    const casesOf = async () =>
      (await seckill('list', '--limit', '10000', '--json')).lines.filter((one) => one.paymentId === stolen.paymentId);
    const [found, ...more] = await casesOf();
    expect(found).to.include({ kind: 'unrecorded', orderId: '1', amountCents: 1250, currency: 'EUR', state: 'open' });
    expect([more, (await seckill('close', String(found?.caseId))).code, await casesOf()]).to.deep.equal([[], 0, []]);
    const unsigned = await ask(`${api.url}/v1/payments/webhook`, { method: 'POST', body: event });
    expect(brief(unsigned)).to.equal('401 bad_signature');
    expect(await expectInvariants(system.stack, saleId, buyers.opLog)).to.include({ sold: 1, unitsLeft: 4 });
  });

  it('brings a coupon for a later order or for one redemption by the shop', async () => {
    const seckill = (...args: string[]) => runCommand(['coupons', ...args], system.stack.env);
    const { saleId, buyers } = await saleWith({ priceCents: 1250, coupon: '500 30d min 1000', limitPerBuyer: 4 });
    const pay = async (requestId: string, coupon?: unknown): Promise<Answer> => {
      expect((await buyers.buy('ann', { requestId }))?.status).to.equal(202);
      const orderId = String((await buyers.settled('ann', requestId)).json.orderId);
      const body = { method: 'POST', token: buyers.token('ann'), body: { coupon } } as const;
      return ask(`${api.url}/v1/orders/${orderId}/pay`, body);
    };
    const mine = async (): Promise<readonly Record<string, unknown>[]> => {
      const { json } = await ask(`${api.url}/v1/me/coupons`, { token: buyers.token('ann') });
      return (json.coupons as Record<string, unknown>[]).filter((one) => one.saleId === saleId);
    };
    const first = await pay('k1');
    await until('the coupon is issued', async () => (await mine()).length === 1);
    const [coupon] = await mine();
    expect(coupon).to.include({ orderId: first.json.orderId, valueCents: 500, minCents: 1000, state: 'free' });
    expect(coupon).not.to.have.any.keys('userId', 'reference');
    const second = await pay('k2', String(coupon?.code).toLowerCase());
    expect(second.json).to.include({ state: 'paid', amountCents: 750 });
    expect(brief(await pay('k3', coupon?.code))).to.equal('409 coupon_refused');

    await until('the second coupon is issued', async () => (await mine()).length === 2);
    const code = String((await mine()).find(({ state }) => state === 'free')?.code);
    for (let i = 0; i < 2; i++) {
      const { code: exit, lines } = await seckill('redeem', code, '--order', 'shop-1', '--json');
      expect([exit, lines[0]?.state, lines[0]?.reference]).to.deep.equal([0, 'redeemed', 'shop-1']);
    }
    const other = await seckill('redeem', code, '--order', 'shop-2');
    expect([other.code, other.stderr]).to.deep.equal([1, `seckill: ${code}: The coupon was already used.\n`]);
    expect((await seckill('show', code, '--json')).lines[0]).to.include({ code, userId: 'ann' });
    expect((await seckill('list', '--sale', saleId, '--json')).lines).to.have.length(2);
    const exported = await seckill('export', '--sale', saleId, '--state', 'redeemed', '--format', 'jsonl');
    expect(exported.lines.map((line) => line.code)).to.have.members([code, coupon?.code]);
    expect((await seckill('show', 'shorter')).code).to.equal(2);

    const revoke = async (...args: string[]) => {
      const { code: exit, lines } = await seckill('revoke', ...args, '--reason', 'wrong terms', '--json');
      return [exit, lines[0]];
    };
    expect((await pay('k4')).json).to.include({ state: 'paid' });
    await until('the third coupon is issued', async () => (await mine()).length === 3);
    const counted = { dryRun: true, revoked: 1, reserved: 0 };
    expect(await revoke('--sale', saleId, '--dry-run')).to.deep.equal([0, counted]);
    const ended = { ...counted, dryRun: false };
    expect(await revoke('--sale', saleId)).to.deep.equal([0, ended]);
    expect(await revoke('--code', code, String(coupon?.code))).to.deep.equal([0, { ...ended, revoked: 0 }]);
    expect(await revoke('--code', '2222222222')).to.deep.equal([1, undefined]);
    expect((await mine()).map(({ state }) => state)).to.have.members(['redeemed', 'redeemed', 'revoked']);
  });

  it('is refunded in parts or cancelled by a command, and sells its units again with --restock', async () => {
    const { saleId, buyers } = await saleWith({ stock: 2 });
    const orders = async (...args: string[]) => {
      const { code, lines } = await runCommand(['orders', ...args, '--reason', 'a call', '--json'], system.stack.env);
      return `${code} ${String(lines[0]?.outcome ?? '')}`;
    };
    const [paid, unpaid] = [await orderOf(buyers, 'ann'), await orderOf(buyers, 'bob')];
    expect(await orders('refund', paid)).to.equal('1 ');
    await move(buyers, 'ann', paid, 'pay');
    const reaches = (state: string) =>
      until(`the order is ${state}`, async () => (await buyers.order('ann', paid)).json.state === state);
    for (let i = 0; i < 2; i++)
      expect(await orders('refund', paid, '--amount', '50', '--key', 'ticket-81')).to.match(/^0 refund/);
    await reaches('refunded');
    expect((await buyers.order('ann', paid)).json.refundedCents).to.equal(50);
    expect(await orders('refund', paid, '--restock')).to.equal('0 refunding');
    await reaches('returned');
    expect(await orders('cancel', unpaid)).to.equal('0 cancelled');
    for (const userId of ['eve', 'fay']) {
      await until(`${userId} gets a unit`, async () => (await buyers.buy(userId))?.status === 202);
      await buyers.settled(userId);
    }
    expect(await expectInvariants(system.stack, saleId, buyers.opLog)).to.include({ sold: 2, unitsLeft: 0 });
  });

  it('is cancelled or refunded with its whole sale by one command, once the sale is paused', async () => {
    const { saleId, buyers } = await saleWith();
    const [paid] = [await orderOf(buyers, 'ann'), await orderOf(buyers, 'bob')];
    await move(buyers, 'ann', paid, 'pay');
    const args = ['sale', 'void', saleId, '--unpaid', '--refund-all', '--reason', 'wrong price', '--json'];
    const voided = async (...more: string[]) => {
      const { code, lines } = await runCommand([...args, ...more], system.stack.env);
      return [code, lines[0]?.cancelled, lines[0]?.refunding];
    };
    expect(await voided('--dry-run')).to.deep.equal([0, 1, 1]);
    expect(await voided()).to.deep.equal([1, undefined, undefined]);
    await runCommand(['sale', 'pause', saleId], system.stack.env);
    expect(await voided()).to.deep.equal([0, 1, 1]);
    expect(await voided(), 'again').to.deep.equal([0, 0, 0]);
    const refunding = ['orders', 'export', '--sale', saleId, '--state', 'refunding', '--format', 'jsonl'];
    await until(
      'no order is refunding',
      async () => (await runCommand(refunding, system.stack.env)).lines.length === 0,
    );
    expect((await buyers.order('ann', paid)).json.state).to.equal('refunded');
    expect(await expectInvariants(system.stack, saleId, buyers.opLog)).to.include({ sold: 1 });
  });

  it('has a failed refund retried and then paid by hand, each by a command', async () => {
    const { saleId, buyers } = await saleWith({ priceCents: 1250 });
    const orderId = await orderOf(buyers, 'ann');
    const paymentId = `pi_${orderId}.2`; // the simulator refuses to refund payments that it has not made
    expect(brief(await report({ type: 'payment.succeeded', paymentId, orderId, ...money }))).to.equal('200 paid');
    const seckill = (...args: string[]) => runCommand([...args, '--json'], system.stack.env);
    const why = ['--reason', 'the buyer called'];
    expect((await seckill('orders', 'refund', orderId, ...why)).code).to.equal(0);
    const failed = async (count: number): Promise<readonly string[]> =>
      found(`${count} failed refunds`, async () => {
        const { lines } = await seckill('refunds', 'list', '--state', 'failed', '--sale', saleId);
        return lines.length === count ? lines.map(({ refundId }) => `order/${String(refundId)}`) : null;
      });
    const [first = ''] = await failed(1);
    for (let i = 0; i < 2; i++) expect((await seckill('refunds', 'retry', first, ...why)).code).to.be.oneOf([0, 1]);
    const [, second = ''] = await failed(2);
    const answer = async (name: string, ...more: string[]) => {
      const { code, lines, stderr } = await seckill('refunds', 'done', name, ...more);
      return `${code} ${String(lines[0]?.outcome ?? stderr.trim())}`;
    };
    expect(await answer(second)).to.match(/^2 .*--reason/s);
    expect(await answer(first, ...why))
      .to.contain(`1 `)
      .and.contain('which failed too');
    expect(await answer(second, ...why)).to.equal('0 done');
    expect(await answer(second, ...why)).to.match(/^1 .*Pay nothing/s);
    expect(await answer('order/999999', ...why)).to.match(/^1 .*there is no refund/s);
    expect((await buyers.order('ann', orderId)).json).to.include({ state: 'refunded', refundedCents: 1250 });
    expect(await expectInvariants(system.stack, saleId, buyers.opLog)).to.include({ sold: 1 });
  });

  it('keeps real money due until an operator claims it if no provider can refund it', async () => {
    const { buyers } = await saleWith({ priceCents: 1250 });
    const orderId = await orderOf(buyers, 'ann');
    await move(buyers, 'ann', orderId, 'cancel');
    const paymentId = `pi_${orderId}.1`;
    const event = { type: 'payment.succeeded', paymentId, orderId, ...money };
    expect(brief(await report(event))).to.equal('200 refund_due');
    const seckill = (...args: string[]) => runCommand(args, system.stack.env);
    const listed = async (): Promise<Readonly<Record<string, unknown>> | undefined> =>
      (await seckill('refunds', 'list', '--limit', '10000', '--json')).lines.find((one) => one.paymentId === paymentId);
    const isRefused = async (): Promise<boolean> => String((await listed())?.lastError).startsWith('refused');
    await until('the keeper has tried it', isRefused);
    expect(await listed()).to.include({ state: 'due', orderId, lastError: 'refused: not a simulated payment' });

    const taken = await seckill('refunds', 'done', paymentId, '--json');
    expect([taken.code, taken.lines[0]?.outcome], taken.stderr).to.deep.equal([0, 'done']);
    const again = await seckill('refunds', 'done', paymentId);
    expect([again.code, again.stderr.includes('Pay nothing')]).to.deep.equal([1, true]);
    const refund = { amountCents: 1250, state: 'refunded', reason: 'order_cancelled' };
    expect((await buyers.order('ann', orderId)).json.refunds).to.deep.equal([refund]);
    const admin = createTokenSigner(system.stack.env.JWT_SECRET)({ userId: 'boss', roles: ['admin'], ttlMs: 60_000 });
    const repeat = await ask(`${api.operatorsUrl}/admin/v1/refunds/${paymentId}/done`, {
      method: 'POST',
      token: admin,
    });
    expect(brief(repeat)).to.equal('409 wrong_state');
    const audit = await ask(`${api.operatorsUrl}/admin/v1/audit?subject=refund:${paymentId}`, { token: admin });
    expect((audit.json.entries as { action: string }[]).map(({ action }) => action)).to.deep.equal(['refund.claimed']);
  });
});
