import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { OtlpSpan } from '../../../deploy/local/traces/otlp.js';
import { startBridge, type Bridge } from '../../../deploy/local/traces/bridge.js';
import { zipkinSpanOf } from '../../../deploy/local/traces/zipkin.js';

const SPAN: OtlpSpan = {
  service: 'seckill-api',
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  parentSpanId: 'c'.repeat(16),
  name: 'place batch',
  kind: 2,
  startTimeUnixNano: '1764000000000123456',
  endTimeUnixNano: '1764000000010123456',
  attributes: [
    { key: 'seckill.sale', value: { stringValue: '7' } },
    { key: 'seckill.purchases', value: { intValue: 3 } },
    { key: 'seckill.confirmed', value: { boolValue: true } },
  ],
};
const traceUrl = (traceId: string): string => `http://zipkin/${traceId}`;

describe('local traces: a span for Zipkin', () => {
  it('has the same ids, times in µs and attributes as tags', () => {
    expect(zipkinSpanOf(SPAN, traceUrl)).to.deep.equal({
      traceId: 'a'.repeat(32),
      id: 'b'.repeat(16),
      parentId: 'c'.repeat(16),
      name: 'place batch',
      kind: 'SERVER',
      timestamp: 1_764_000_000_000_123,
      duration: 10_000,
      localEndpoint: { serviceName: 'seckill-api' },
      tags: { 'seckill.sale': '7', 'seckill.purchases': '3', 'seckill.confirmed': 'true' },
    });
  });

  it('has links to other traces and its error as tags', () => {
    const links = [
      { traceId: SPAN.traceId, spanId: 'd'.repeat(16) },
      { traceId: 'e'.repeat(32), spanId: 'd'.repeat(16) },
    ];
    const { tags } = zipkinSpanOf({ ...SPAN, attributes: [], links, status: { code: 2, message: 'away' } }, traceUrl);
    expect(tags).to.deep.equal({ 'link.1': traceUrl('e'.repeat(32)), error: 'away' });
    const many = Array.from({ length: 100 }, () => links[1] as (typeof links)[number]);
    expect(Object.keys(zipkinSpanOf({ ...SPAN, attributes: [], links: many }, traceUrl).tags)).to.have.length(20);
  });
});

describe('local traces: the server that translates', () => {
  let zipkin: Server;
  let received: unknown[];
  let status: number;
  let bridge: Bridge;
  beforeEach(async () => {
    [received, status] = [[], 202];
    zipkin = createServer((req, res) => {
      let body = '';
      req.on('data', (chunk) => (body += String(chunk)));
      req.once('end', () => {
        received.push([req.url, JSON.parse(body)]);
        res.writeHead(status).end('no room');
      });
    });
    zipkin.listen(0, '127.0.0.1');
    await once(zipkin, 'listening');
    bridge = await startBridge(0, `http://127.0.0.1:${(zipkin.address() as AddressInfo).port}`);
  });
  afterEach(async () => {
    await bridge.close();
    zipkin.closeAllConnections();
    zipkin.close();
  });

  const send = (body: string, path = '/v1/traces', type = 'application/json'): Promise<Response> =>
    fetch(`http://127.0.0.1:${bridge.port}${path}`, { method: 'POST', headers: { 'content-type': type }, body });
  const { service, ...sent } = SPAN;
  const request = JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }] },
        scopeSpans: [{ spans: [sent] }],
      },
    ],
  });

  it('sends spans to Zipkin', async () => {
    const answer = await send(request);
    expect([answer.status, await answer.json()]).to.deep.equal([200, {}]);
    expect(received).to.deep.equal([['/api/v2/spans', [zipkinSpanOf(SPAN, () => '')]]]);
  });

  it('refuses other requests than OTLP in JSON, and returns 503 when Zipkin refuses', async () => {
    expect((await send('{')).status).to.equal(400);
    expect((await send(request, '/v1/logs')).status).to.equal(404);
    expect((await send(request, '/v1/traces', 'application/x-protobuf')).status).to.equal(415);
    expect(received).to.deep.equal([]);
    status = 500;
    expect((await send(request)).status).to.equal(503);
  });
});
