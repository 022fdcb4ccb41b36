import { expect } from 'chai';
import { newBatchId } from '../../../src/core/batch.js';
import type { PurchaseOutcome } from '../../../src/core/outcome.js';
import type { Log } from '../../../src/core/ports/log.js';
import { isTraceId, traceIdOfBatch } from '../../../src/core/trace-context.js';
import { AccessLog } from '../../../src/http/access-log.js';
import type { HttpServices } from '../../../src/http/services.js';
import { MemoryTracing } from '../../helpers/memory/memory-tracing.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { silentLog } from '../../helpers/silent-log.js';
import { partial } from '../../helpers/partial.js';
import { bearer, FakeServices, RawClient, rawPurchase, startServer, type Started } from './http-harness.js';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT_ID = '00f067aa0ba902b7';
const traceparent = (flags: '00' | '01'): string => `00-${TRACE_ID}-${PARENT_ID}-${flags}`;
const ADMIN = bearer('boss', ['admin']);

describe('request trace ids', () => {
  let fake: FakeServices;
  let server: Started;
  afterEach(() => server.stop());

  const start = async (services: Partial<HttpServices> = {}): Promise<void> => {
    fake = new FakeServices(services);
    server = await startServer(fake);
  };
  const buy = (headers: Record<string, string> = {}, path = '/v1/sales/7/purchases'): Promise<Response> =>
    fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: bearer(), 'idempotency-key': 'k1', ...headers },
    });
  const traceIdOf = (response: Response): string => response.headers.get('trace-id') ?? 'none';

  it('appear in every response, taken from the trace of the caller', async () => {
    await start();
    const headers = { traceparent: traceparent('00') };
    const answers = async (): Promise<Response[]> => [
      await buy(headers),
      await buy({ ...headers, authorization: 'Bearer x' }),
      await buy({ ...headers, 'idempotency-key': 'a b' }),
      await fetch(`${server.url}/v1/sales/7/purchases`, { headers }),
      await fetch(`${server.url}/nowhere`, { headers }),
      await fetch(`${server.url}/v1/sales/%zz`, { headers }),
      await fetch(`${server.url}/healthz`, { headers }),
      await fetch(`${server.operatorsUrl}/admin/v1/audit?limit=x`, { headers: { ...headers, authorization: ADMIN } }),
    ];
    const accepted = await answers();
    expect(accepted.map(({ status }) => status)).to.deep.equal([202, 401, 400, 405, 404, 400, 200, 400]);
    expect(accepted.map(traceIdOf)).to.deep.equal(accepted.map(() => TRACE_ID));
    fake.early = 'sold_out';
    const soldOut = await buy(headers);
    expect([soldOut.status, traceIdOf(soldOut)]).to.deep.equal([409, TRACE_ID]);
  });

  it('appear in streams and exports', async () => {
    const rows = partial<HttpServices['orderSearch']>({
      page: async () => ({ orders: [], next: null }),
      detailsOf: async () => new Map(),
    });
    const steps = async function* () {};
    const open = () => Promise.resolve({ outcome: 'following' as const, steps, close: () => undefined });
    await start({ orderSearch: rows, followPurchase: { open } as unknown as HttpServices['followPurchase'] });
    const stream = (method: string): Promise<Response> =>
      fetch(`${server.url}/v1/sales/7/purchases/k1/events`, {
        method,
        headers: { authorization: bearer(), traceparent: traceparent('01') },
      });
    for (const method of ['GET', 'HEAD']) {
      const response = await stream(method);
      expect([response.status, traceIdOf(response)], method).to.deep.equal([200, TRACE_ID]);
      await response.text();
    }
    const exported = await fetch(`${server.operatorsUrl}/admin/v1/orders/export?sale=7`, {
      headers: { authorization: ADMIN, traceparent: traceparent('01') },
    });
    await exported.text();
    expect([exported.status, traceIdOf(exported)]).to.deep.equal([200, TRACE_ID]);
  });

  it('appear in the response to an unparsable request and to a bad body', async () => {
    await start();
    const said = async (...lines: string[]): Promise<[status: number, traceId: string]> => {
      const client = await RawClient.to(server.port);
      const answer = await client.say(...lines).answer();
      await client.end();
      return [answer?.status ?? 0, answer?.headers.get('trace-id') ?? 'none'];
    };
    const never = [
      await said('nonsense', '', ''),
      await said('GET /healthz HTTP/1.1', 'Host: x', `X-Long: ${'x'.repeat(40_000)}`, '', ''),
    ];
    expect(never.map(([status]) => status)).to.deep.equal([400, 431]);
    for (const [, id] of never) expect(isTraceId(id), id).to.equal(true);
    expect(never[0]?.[1]).not.to.equal(never[1]?.[1]);
    const own = `traceparent: ${traceparent('00')}`;
    const bad = rawPurchase('zz\r\n', own, 'Idempotency-Key: k1', 'Transfer-Encoding: chunked');
    expect(await said(bad)).to.deep.equal([400, TRACE_ID]);
    const client = await RawClient.to(server.port);
    await client.say('GET /healthz HTTP/1.1', 'Host: x', own, '', '').answer();
    const later = await client.say('nonsense', '', '').answer();
    expect(later?.headers.get('trace-id'), 'not the id of an earlier request').not.to.equal(TRACE_ID);
  });

  it('are new for each response, and not stored, if the caller sends no valid id [S6]', async () => {
    await start();
    const bad = [
      traceparent('01').toUpperCase(),
      `${traceparent('01')}, ${traceparent('01')}`,
      '00-x',
      'x'.repeat(9000),
    ];
    const answers = [await buy(), await buy(), ...(await Promise.all(bad.map((text) => buy({ traceparent: text }))))];
    const ids = answers.map(traceIdOf);
    for (const id of ids) expect(isTraceId(id), id).to.equal(true);
    expect(new Set([...ids, TRACE_ID]).size).to.equal(ids.length + 1);
    expect(fake.entered.map(({ traceId }) => traceId)).to.deep.equal(ids.map(() => undefined));
  });

  it('lead to the batch if the purchase carries no id', async () => {
    await start();
    const batchId = newBatchId();
    const outcomes: readonly PurchaseOutcome[] = [
      { outcome: 'accepted', batchId },
      { outcome: 'outcome_unknown', batchId },
      { outcome: 'replayed', entry: { state: 'held', batchId, quantity: 1 } },
    ];
    for (const outcome of outcomes) {
      fake.enter = () => Promise.resolve(outcome);
      expect(traceIdOf(await buy()), outcome.outcome).to.equal(traceIdOfBatch(batchId));
      expect(traceIdOf(await buy({ traceparent: traceparent('00') })), 'its own id comes first').to.equal(TRACE_ID);
    }
    for (const outcome of ['accepted', 'sold_out'] as const) {
      fake.enter = () => Promise.resolve({ outcome, batchId: 'batch-1' } as PurchaseOutcome);
      expect(isTraceId(traceIdOf(await buy())), 'no batch or a batch with another id').to.equal(true);
    }
  });

  for (const [stored, sampled, unsampled, ownRoot] of [
    ['all', TRACE_ID, TRACE_ID, true],
    ['sampled', TRACE_ID, undefined, true],
    ['none', undefined, undefined, false],
  ] as const) {
    it(`store the trace id of a purchase with TRACE_IDS_STORED=${stored}`, async () => {
      const tracing = new MemoryTracing();
      await start({ traceIdsStored: stored, tracing });
      await buy({ traceparent: traceparent('01') });
      await buy({ traceparent: traceparent('00') });
      const recorded = await buy(); // The sampler records this request.
      tracing.records = false;
      await buy();
      const root = ownRoot ? traceIdOf(recorded) : undefined;
      expect(fake.entered.map(({ traceId }) => traceId)).to.deep.equal([sampled, unsampled, root, undefined]);
    });
  }

  it('are stored if the caller records its trace, even if this API records nothing', async () => {
    await start({ traceIdsStored: 'sampled' });
    await buy({ traceparent: traceparent('01') });
    await buy({ traceparent: traceparent('00') });
    expect(fake.entered.map(({ traceId }) => traceId)).to.deep.equal([TRACE_ID, undefined]);
  });

  it('end the span with its error at every response, and never name the user', async () => {
    const tracing = new MemoryTracing();
    await start({ tracing });
    fake.early = 'sold_out';
    await buy();
    fake.early = null;
    fake.enter = () => Promise.resolve({ outcome: 'outcome_unknown' });
    await buy();
    await buy({ authorization: 'Bearer x', traceparent: traceparent('01') }); // A stranger gets no span.
    await buy({}, `/v1/sales/${'x'.repeat(5000)}/purchases`);
    const ends = tracing.spans.map(({ ended, error, fields }) => [ended, error, fields['seckill.code']]);
    expect(ends).to.deep.equal([
      [true, null, 'sold_out'],
      [true, 'outcome_unknown', 'outcome_unknown'],
      [true, null, 'bad_request'],
    ]);
    expect(tracing.spans[2]?.fields['seckill.sale']).to.equal('x'.repeat(64));
    expect(JSON.stringify(tracing.spans)).not.to.match(/u1|Bearer|eyJ|192\.0\.2\.1|127\.0\.0\.1/);
    await fetch(`${server.url}/healthz`, { headers: { traceparent: traceparent('01') } });
    expect(tracing.spans, 'only purchases are recorded').to.have.length(3);
  });

  it('appear in the access log and in the log line of a bug', async () => {
    let written = '';
    const lines: object[] = [];
    const sink = { write: async (text: string) => void (written += text), close: () => Promise.resolve() };
    const options = { kind: 'all', sampleEvery: 1, perSecondMax: 100 } as const;
    const accessLog = new AccessLog(options, sink, new ManualClock(), () => undefined);
    const log: Log = { ...silentLog, error: (fields) => void lines.push(fields) };
    await start({ accessLog, log });
    const [accepted, traced] = [await buy(), await buy({ traceparent: traceparent('00') })];
    fake.enter = () => Promise.reject(new Error('a bug'));
    const failed = await buy();
    await accessLog.close();
    const logged = written.split('\n').filter((line) => line !== '');
    expect(logged.map((line) => (JSON.parse(line) as { trace: string }).trace)).to.deep.equal(
      [accepted, traced, failed].map(traceIdOf),
    );
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ traceId: traceIdOf(failed) });
  });
});
