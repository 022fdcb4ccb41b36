import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { found, until } from '../chaos/harness/wait.js';
import { runCommand } from '../helpers/command.js';
import { expectInvariants } from '../helpers/invariants.js';
import { type CollectedSpan, OtlpCollector } from '../helpers/otlp-collector.js';
import { useSystem } from '../helpers/system.js';

const PARENT_ID = '00f067aa0ba902b7';
const BUY = 'POST /v1/sales/{saleId}/purchases';
/** An unpaid order expires after this time, so that the test sees its deadline message. */
const PAYMENT_WINDOW_MS = 2_000;

describe('traces across API, broker, worker and keeper', () => {
  let collector: OtlpCollector;
  let api: Program;
  let worker: Program;
  let accessLog: string;
  const system = useSystem(async ({ programs, stack }) => {
    collector = await OtlpCollector.start();
    accessLog = join(stack.servers.dir, `access-${randomBytes(4).toString('hex')}.jsonl`);
    const traced = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER_ARG: '0',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    };
    const gathering = { BATCH_GATHER_MS: '1000', ACCESS_LOG: 'all', ACCESS_LOG_FILE: accessLog };
    [api, worker] = await Promise.all([
      programs.start('api', { env: { ...traced, ...gathering } }),
      programs.start('worker', { env: { ...traced, ORDER_PAYMENT_WINDOW_MS: String(PAYMENT_WINDOW_MS) } }),
      programs.start('keeper', { env: { ...traced, KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' } }),
    ]);
  });
  after(() => collector?.close());

  const newTraceId = (): string => randomBytes(16).toString('hex');
  const traceparent = (traceId: string, flags: '00' | '01'): string => `00-${traceId}-${PARENT_ID}-${flags}`;
  const traceIdOf = (answer: Answer | null): string => String(answer?.headers['trace-id']);
  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const byHttp = async (id: string) => {
    const token = buyersOf('1').token('root', ['viewer']);
    const { status, json } = await ask(`${api.operatorsUrl}/admin/v1/requests/${id}`, { token });
    return { status, purchases: (json.purchases ?? []) as Record<string, string>[] };
  };

  /** Formats each span below its parent as `service name > child`, sorted. */
  function treeOf(spans: readonly CollectedSpan[]): string[] {
    const nameOf = ({ service, name }: CollectedSpan): string => `${service.replace('seckill-', '')} ${name}`;
    const names = new Map(spans.map((span) => [span.spanId, nameOf(span)]));
    return spans.map((span) => `${names.get(span.parentSpanId ?? '') ?? span.parentSpanId} > ${nameOf(span)}`).sort();
  }

  it('show one purchase as one tree, from the click to the end of its order', async () => {
    const sale = await openSale(system.stack, { stock: 5 });
    const buyers = buyersOf(sale.saleId);
    const traceId = newTraceId();
    const bought = await buyers.buy('ann', { requestId: 'click', traceparent: traceparent(traceId, '01') });
    expect([bought?.status, traceIdOf(bought)]).to.deep.equal([202, traceId]);
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
      () => undefined, // the comparison shows missing spans
    );
    const spans = collector.ofTrace(traceId);
    expect(treeOf(spans)).to.deep.equal(tree);

    const byId = new Map(spans.map((span) => [span.spanId, span]));
    for (const { name, parentSpanId, startTimeUnixNano, endTimeUnixNano, status } of spans) {
      expect(status?.code ?? 0, name).to.equal(0);
      const parent = byId.get(parentSpanId ?? '');
      expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano), name).to.equal(true);
      // each span reads the same clock twice: first in ms, then more precisely
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

  it('put the trace id in the message and the access log, and lead to the purchase before and after its order exists', async () => {
    const sale = await openSale(system.stack, { stock: 5 });
    const buyers = buyersOf(sale.saleId);
    const traceId = newTraceId();
    worker.signal('SIGSTOP');
    try {
      const bought = await buyers.buy('bob', { requestId: 'b1', traceparent: traceparent(traceId, '00') });
      expect([bought?.status, traceIdOf(bought)]).to.deep.equal([202, traceId]);
      const pending = await byHttp(traceId);
      expect(pending.purchases.map(({ userId, state }) => [userId, state])).to.deep.equal([['bob', 'pending']]);
      expect(pending.purchases[0]).to.include({ saleId: sale.saleId, requestId: 'b1', traceId });
    } finally {
      worker.signal('SIGCONT');
    }
    expect((await buyers.status('bob', 'b1', 20)).json.status).to.equal('ordered');
    const shown = await runCommand(['trace', traceId.toUpperCase(), '--json'], system.stack.env);
    expect([shown.code, shown.lines.length], shown.stderr).to.deep.equal([0, 1]);
    expect(shown.lines[0]).to.include({ userId: 'bob', requestId: 'b1', traceId });
    expect((await byHttp(newTraceId())).status).to.equal(404);

    const messages = await found('the message', async () => {
      const args = ['mq', 'messages', '--topic', 'seckill-purchase', '--key', traceId, '--json'];
      const { lines } = await runCommand(args, system.stack.env);
      return lines.length > 0 ? lines : null;
    });
    expect(JSON.stringify(messages)).to.contain(`${traceId}`);
    const logged = await found('its line of the access log', async () => {
      const lines = readFileSync(accessLog, 'utf8').split('\n');
      return lines.find((line) => line.includes(`"trace":"${traceId}"`)) ?? null;
    });
    expect(JSON.parse(logged)).to.include({ route: 'purchase', code: 'accepted', user: 'bob', request: 'b1' });
    expect(collector.ofTrace(traceId), 'its caller does not record it').to.deep.equal([]);
    await expectInvariants(system.stack, sale.saleId, buyers.opLog);
  });

  it("find a purchase without a caller's trace by the Trace-Id of its answer, without storing it", async () => {
    const sale = await openSale(system.stack, { stock: 5 });
    const buyers = buyersOf(sale.saleId);
    worker.signal('SIGSTOP');
    let traceId = '';
    try {
      const bought = await buyers.buy('cid');
      traceId = traceIdOf(bought);
      expect(bought?.status).to.equal(202);
      expect(traceIdOf(await buyers.buy('cid')), 'asked again').to.equal(traceId);
      expect((await byHttp(traceId)).purchases).to.have.length(1);
    } finally {
      worker.signal('SIGCONT');
    }
    expect((await buyers.status('cid', 'k1', 20)).json.status).to.equal('ordered');
    const { purchases } = await byHttp(traceId);
    expect(purchases.map(({ userId, traceId: own }) => [userId, own])).to.deep.equal([['cid', traceId]]);
    const [stored] = await system.stack.mysql.query<{ n: string }>(
      'SELECT COUNT(*) AS n FROM order_traces JOIN orders ON orders.id = order_id WHERE orders.sale_id = ?',
      [sale.saleId],
    );
    expect(Number(stored?.n)).to.equal(0);
    await expectInvariants(system.stack, sale.saleId, buyers.opLog);
  });

  it('lose no purchase while the collector is down, count failed spans and log once', async () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_TRACES_SAMPLER_ARG: '1',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    };
    const lonely = await system.programs.start('api', { env });
    const sale = await openSale(system.stack, { stock: 50 });
    const buyers = new Buyers(sale.saleId, system.stack.env.JWT_SECRET, () => [lonely.url]);
    const users = Array.from({ length: 20 }, (_, index) => `u${index}`);
    for (const answer of await buyers.rush(users, 10)) expect(answer?.status).to.equal(202);
    await until('the spans are counted as failed', async () => {
      const { text } = await ask(`${lonely.operatorsUrl}/metrics`);
      return Number(/^seckill_trace_spans_total\{result="failed",.*\} (\d+)$/m.exec(text)?.[1]) >= users.length;
    });
    expect(lonely.log.match(/spans are lost/g)).to.have.length(1);
    expect(lonely.log).to.contain('spans are recorded');
    await expectInvariants(system.stack, sale.saleId, buyers.opLog);
    await lonely.stop();
  });
});
