import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { Buyers } from '../chaos/harness/buyers.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { expectInvariants } from '../helpers/invariants.js';
import { type CollectedSpan, OtlpCollector } from '../helpers/otlp-collector.js';
import { useSystem } from '../helpers/system.js';

const PARENT_ID = '00f067aa0ba902b7';
const BUY = 'POST /v1/sales/{saleId}/purchases';
/** Short, so that the test sees the deadline message of an unpaid order. */
const PAYMENT_WINDOW_MS = 2_000;

describe('traces across API, broker, worker and keeper', () => {
  let collector: OtlpCollector;
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    collector = await OtlpCollector.start();
    const traced = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER_ARG: '0',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    };
    [api] = await Promise.all([
      programs.start('api', { env: { ...traced, BATCH_GATHER_MS: '1000' } }),
      programs.start('worker', { env: { ...traced, ORDER_PAYMENT_WINDOW_MS: String(PAYMENT_WINDOW_MS) } }),
      programs.start('keeper', { env: { ...traced, KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' } }),
    ]);
  });
  after(() => collector?.close());

  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);

  /** Formats each span below its parent as `service name > child`, sorted. */
  function treeOf(spans: readonly CollectedSpan[]): string[] {
    const nameOf = ({ service, name }: CollectedSpan): string => `${service.replace('seckill-', '')} ${name}`;
    const names = new Map(spans.map((span) => [span.spanId, nameOf(span)]));
    return spans.map((span) => `${names.get(span.parentSpanId ?? '') ?? span.parentSpanId} > ${nameOf(span)}`).sort();
  }

  it('show one purchase as one tree, from the click to the end of its order', async () => {
    const sale = await openSale(system.stack, { stock: 5 });
    const buyers = buyersOf(sale.saleId);
    const traceId = randomBytes(16).toString('hex');
    const traceparent = `00-${traceId}-${PARENT_ID}-01`;
    const bought = await buyers.buy('ann', { requestId: 'click', traceparent });
    expect([bought?.status, bought?.headers['trace-id']]).to.deep.equal([202, traceId]);
    await until('the order has expired', async () => {
      const { json } = await buyers.status('ann', 'click', 1);
      return json.orderState === 'expired';
    });

    const tree = [
      `${PARENT_ID} > api ${BUY}`,
      `api ${BUY} > api place batch`,
      'api place batch > api precheck',
      'api place batch > api half',
      'api place batch > api deduct',
      'api place batch > api commit',
      'api place batch > worker process seckill-purchase',
      'worker process seckill-purchase > worker write orders',
      'worker process seckill-purchase > worker mark recorded',
      'api place batch > keeper publish order events',
      'keeper publish order events > keeper process seckill-order-event', // coupon group
      'keeper publish order events > keeper process seckill-order-event', // notifier group
      'keeper publish order events > keeper process seckill-payment-deadline',
    ].sort();
    await until('all spans have come', () => collector.ofTrace(traceId).length >= tree.length).catch(
      () => undefined, // the comparison below shows missing spans
    );
    const spans = collector.ofTrace(traceId);
    expect(treeOf(spans)).to.deep.equal(tree);

    const byId = new Map(spans.map((span) => [span.spanId, span]));
    for (const { name, parentSpanId, startTimeUnixNano, endTimeUnixNano, status } of spans) {
      expect(status?.code ?? 0, name).to.equal(0);
      const parent = byId.get(parentSpanId ?? '');
      expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano), name).to.equal(true);
      // each span reads the clock twice, first in ms
      const earliest = BigInt(parent?.startTimeUnixNano ?? 0) - 2_000_000n;
      expect(BigInt(startTimeUnixNano) >= earliest, `${name} begins before its parent`).to.equal(true);
    }
    const purchase = spans.find(({ name }) => name === BUY);
    expect(purchase?.fields).to.include({ 'seckill.sale': sale.saleId, 'seckill.request': 'click' });
    const batch = spans.find(({ name }) => name === 'place batch');
    expect(batch?.links?.map(({ spanId }) => spanId)).to.deep.equal([purchase?.spanId]);
    expect(JSON.stringify(spans), 'no buyer, no token').not.to.match(/ann|Bearer|eyJ/);
    await expectInvariants(system.stack, sale.saleId, buyers.opLog);
  });
});
