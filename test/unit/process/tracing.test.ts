import { expect } from 'chai';
import { Registry } from 'prom-client';
import { loadConfig } from '../../../src/core/config/load.js';
import type { Log } from '../../../src/core/ports/log.js';
import type { Span } from '../../../src/core/ports/tracing.js';
import { readTraceparent } from '../../../src/core/trace-context.js';
import { systemClock } from '../../../src/process/system-clock.js';
import { openTracing, type OpenTracing } from '../../../src/process/tracing.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { OtlpCollector } from '../../helpers/otlp-collector.js';
import { silentLog } from '../../helpers/silent-log.js';
import { until } from '../../chaos/harness/wait.js';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = { traceId: TRACE_ID, spanId: '00f067aa0ba902b7', isSampled: true };
const START = { name: 'buy', kind: 'server', fields: { 'seckill.sale': '7', n: 2, yes: true } } as const;

describe('tracing', () => {
  let collector: OtlpCollector;
  let registry: Registry;
  let warnings: { readonly lost: number; readonly error: string }[];
  let tracing: OpenTracing;
  let clock: ManualClock;
  beforeEach(async () => {
    collector = await OtlpCollector.start();
    registry = new Registry();
    warnings = [];
    clock = new ManualClock();
  });
  afterEach(async () => {
    await tracing.close();
    await collector.close();
  });

  const open = async (env: Record<string, string> = {}, own = {}): Promise<void> => {
    const config = loadConfig(['tracing'], {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '20',
      ...env,
    });
    const log: Log = { ...silentLog, warn: (fields) => void warnings.push(fields as never) };
    tracing = await openTracing(config.tracing, 'api', { registry, clock: systemClock, log, ...own });
  };
  const record = (count: number): Span[] =>
    Array.from({ length: count }, () => tracing.startRequest(PARENT, START)).flatMap((span) => span ?? []);
  const counted = async (result: string): Promise<number> => {
    const metric = await registry.getSingleMetric('seckill_trace_spans_total')?.get();
    return metric?.values.find(({ labels }) => labels.result === result)?.value ?? -1;
  };

  it('records, counts and loads nothing without a collector address', async () => {
    await open({ OTEL_EXPORTER_OTLP_ENDPOINT: '' });
    expect(tracing.startRequest(PARENT, START)).to.equal(null);
    expect(tracing.startWork(`00-${TRACE_ID}-${PARENT.spanId}-01`, START)).to.equal(null);
    expect(await registry.metrics()).to.equal('\n');
  });

  it('sends ids, parent, times, fields, links and the reason of a failure', async () => {
    await open();
    const span = tracing.startRequest(PARENT, START);
    const step = tracing.startWork(span?.traceparent, {
      name: 'step',
      kind: 'client',
      links: [`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, 'none'],
    });
    step?.link(`00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`);
    step?.set({ 'seckill.outcome': 'deducted' });
    step?.end('Error: it broke');
    step?.end();
    step?.set({ late: true });
    span?.end();
    await tracing.close();

    const [child, parent] = collector.spans;
    expect(collector.spans).to.have.length(2);
    expect(parent).to.include({ traceId: TRACE_ID, parentSpanId: PARENT.spanId, name: 'buy', kind: 2 });
    expect(parent?.service).to.equal('seckill-api');
    expect(parent?.fields).to.deep.equal({ 'seckill.sale': '7', n: '2', yes: 'true' });
    expect(parent?.spanId).to.equal(readTraceparent(span?.traceparent ?? '')?.spanId);
    expect(child).to.include({ traceId: TRACE_ID, parentSpanId: parent?.spanId, kind: 3 });
    expect(child?.fields).to.deep.equal({ 'seckill.outcome': 'deducted' });
    expect(child?.status).to.deep.equal({ code: 2, message: 'Error: it broke' });
    expect(child?.links?.map(({ traceId }) => traceId)).to.deep.equal(['a'.repeat(32), 'c'.repeat(32)]);
    const nowNs = BigInt(Date.now()) * 1_000_000n;
    for (const { startTimeUnixNano: startNs, endTimeUnixNano: endNs } of collector.spans) {
      expect(BigInt(endNs) >= BigInt(startNs) && nowNs - BigInt(endNs) < 60_000_000_000n).to.equal(true);
    }
    expect(await counted('sent')).to.equal(2);
    expect(warnings).to.deep.equal([]);
  });

  it('follows the decision of the caller, or samples at random if there is none', async () => {
    await open({ OTEL_TRACES_SAMPLER_ARG: '1' });
    expect(tracing.startRequest({ ...PARENT, isSampled: false }, START)).to.equal(null);
    expect(tracing.startRequest(PARENT, START)?.traceId).to.equal(TRACE_ID);
    const root = tracing.startRequest(null, START);
    expect(root?.traceId)
      .to.match(/^[0-9a-f]{32}$/)
      .and.not.equal(TRACE_ID);
    await tracing.close();

    registry.clear();
    await open({ OTEL_TRACES_SAMPLER_ARG: '0' }, { perSecondMax: 1000 });
    for (let i = 0; i < 500; i++) expect(tracing.startRequest(null, START)).to.equal(null);
    expect(tracing.startRequest(PARENT, START)).not.to.equal(null);
    await tracing.close();

    registry.clear();
    await open({ OTEL_TRACES_SAMPLER_ARG: '0.5' }, { perSecondMax: 100_000 });
    const recorded = Array.from({ length: 2000 }, () => tracing.startRequest(null, START)).filter(
      (span) => span !== null,
    );
    expect(recorded.length).to.be.within(800, 1200);
  });

  it('records work only when its message belongs to a recorded trace', async () => {
    await open({ OTEL_TRACES_SAMPLER_ARG: '1' });
    const none = [undefined, '', 'x', `00-${TRACE_ID}-${PARENT.spanId}-00`, `00-${TRACE_ID}-${PARENT.spanId}`];
    for (const traceparent of none) expect(tracing.startWork(traceparent, START), traceparent).to.equal(null);
    expect(tracing.startWork(`00-${TRACE_ID}-${PARENT.spanId}-01`, START)?.traceId).to.equal(TRACE_ID);
  });

  it('limits the recorded requests per second, but completes traces under way', async () => {
    await open({}, { clock, perSecondMax: 3 });
    expect(record(5)).to.have.length(3);
    expect(tracing.startWork(`00-${TRACE_ID}-${PARENT.spanId}-01`, START)).not.to.equal(null);
    const limited = await registry.getSingleMetric('seckill_trace_requests_limited_total')?.get();
    expect(limited?.values[0]?.value).to.equal(2);
    clock.advance(1000);
    expect(record(5)).to.have.length(3);
  });

  it('keeps room for randomly sampled purchases when many callers request traces', async () => {
    await open({ OTEL_TRACES_SAMPLER_ARG: '1' }, { clock, perSecondMax: 3 });
    record(5);
    const chosen = Array.from({ length: 5 }, () => tracing.startRequest(null, START)).filter((span) => span !== null);
    expect(chosen).to.have.length(3);
  });

  it('loses only spans if the collector refuses them, and logs that once a minute', async () => {
    await open();
    collector.refuses = 400;
    for (let sent = 0; sent < 3; sent++) {
      for (const span of record(10)) span.end();
      await until('the collector was asked', () => collector.headers.length > sent);
    }
    await until('all are counted', async () => (await counted('failed')) === 30);
    expect(warnings).to.have.length(1);
    expect(warnings[0]).to.include({ lost: 10 });
    collector.refuses = null;
    for (const span of record(1)) span.end();
    await until('the next one is sent', async () => (await counted('sent')) === 1);
  });

  it('queues a limited number of spans for a silent collector, and closes without waiting', async () => {
    await open({ OTEL_BSP_MAX_QUEUE_SIZE: '16' }, { clock });
    collector.refuses = 0;
    for (const span of record(50)) span.end();
    expect([await counted('dropped'), await counted('sent'), await counted('failed')]).to.deep.equal([34, 0, 0]);
    expect(warnings).to.deep.equal([{ lost: 1, error: 'too many wait' }]);
    await tracing.close();
  });

  it('forwards only the trace: no baggage and no state of other systems', async () => {
    await open();
    const span = tracing.startRequest(PARENT, START);
    span?.end();
    await tracing.close();
    expect(JSON.stringify([collector.headers, collector.spans])).not.to.match(/baggage|tracestate|traceState/i);
  });
});
