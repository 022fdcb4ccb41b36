import { expect } from 'chai';
import fc from 'fast-check';
import { decodeBatch, sealBatch } from '../../src/core/batch.js';
import { isMetadata } from '../../src/core/metadata.js';
import { decodeOrderEvents, encodeOrderEvents } from '../../src/core/order-event.js';
import { decodeOrderNotifications, encodeOrderNotifications } from '../../src/core/order-notifications.js';
import { parseRequestEntry, formatRequestEntry } from '../../src/core/outcome.js';
import { parseJson } from '../../src/core/parse-json.js';
import { decodePaymentDeadline, encodePaymentDeadline } from '../../src/core/payment-deadline.js';
import { storedDeadLetter } from '../helpers/memory/memory-dead-letters.js';
import { deadLetterBody } from '../../src/operate/dead-letters/dead-letter-store.js';
import { readPaymentEvent } from '../../src/http/routes/payment-webhook.js';
import { readWanted } from '../../src/http/routes/purchase.js';
import { BODY_READERS } from '../../src/operate/dead-letters/collect-dead-letters.js';
import { readNewSale } from '../../src/sales/new-sale.js';
import { bytes, forAll, fuzz, MAGIC_NAMES, nested, poison } from './fuzz.js';

/** Exceeds the call stack. */
const DEPTH_MAX = 20_000;

/** Valid bodies that each case corrupts. */
const GOOD = [
  sealBatch({
    batchId: 'batch-1',
    saleId: '7',
    bucket: 0,
    epoch: 1,
    createdAtMs: 1_700_000_000_000,
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    purchases: [
      { userId: 'u1', requestId: 'k1', quantity: 1, traceId: '0af7651916cd43dd8448eb211c80319c' },
      { userId: 'u2', requestId: 'k1', quantity: 3 },
    ],
  }).body,
  sealBatch({
    batchId: 'batch-2',
    saleId: '7',
    bucket: 0,
    epoch: 1,
    createdAtMs: 1_700_000_000_000,
    traceparent: '',
    purchases: [{ userId: 'u1', requestId: 'k1', quantity: 1, metadata: { cart: '42' } }],
  }).body,
  '{"v":1,"events":[{"eventId":"e1","type":"order.paid","saleId":"7","at":1,"orders":["1"],"metadata":{"1":{"a":"b"}}}]}',
  '{"quantity":2,"metadata":{"cart":"42"}}',
  encodeOrderEvents([{ eventId: 'e1', type: 'order.paid', saleId: '7', atMs: 1_700_000_000_000, orders: ['1', '2'] }]),
  encodeOrderNotifications([{ userId: 'u1', requestId: 'k1', orderId: '9', state: 'failed', reason: 'limit_reached' }]),
  encodePaymentDeadline({ batchId: 'batch-1', saleId: '7', deadlineAtMs: 1_700_000_000_000, orders: ['1', '2'] }),
  '{"type":"payment.succeeded","paymentId":"p1","orderId":"9","amountCents":1}',
  '{"sku":"a","title":"b","priceCents":1,"stock":1,"limitPerBuyer":1,"opensAt":"2030-01-01T00:00:00Z","closesAt":"2030-01-02T00:00:00Z"}',
] as const;
const FIELDS = [...new Set(GOOD.flatMap((body) => Object.keys(JSON.parse(body) as object)))];

const oddValue = fc.oneof(
  fc.json({ maxDepth: 3 }),
  nested(DEPTH_MAX),
  poison,
  fc.constantFrom('1e999', '-0', '0.5', '9007199254740993', 'null', '"\\ud800"', '"7}:x{"', '"\\u0000"', '""'),
  fc.string().map((text) => JSON.stringify(text)),
);
/** Changes a field of a valid body, as text, because no object can hold everything that JSON can express. */
const oneFieldOff = fc
  .tuple(fc.constantFrom(...GOOD), fc.constantFrom(...FIELDS, ...MAGIC_NAMES), oddValue)
  .map(([body, field, value]) => `${body.slice(0, -1)},${JSON.stringify(field)}:${value}}`);
const cutOff = fc.tuple(fc.constantFrom(...GOOD), fc.nat(200)).map(([body, end]) => body.slice(0, end));
const oneByteOff = fc
  .tuple(fc.constantFrom(...GOOD), fc.nat(200), bytes(2))
  .map(([body, at, byte]) => body.slice(0, at) + byte + body.slice(at + 1));
const anyBody = fc.oneof(fc.string(), fc.json(), bytes(200), nested(DEPTH_MAX), poison, cutOff, oneByteOff, {
  arbitrary: oneFieldOff,
  weight: 4,
});

describe('hostile bodies', () => {
  const run = fuzz();
  before(() => console.log(`    ${run.repeat}`));

  it('returns a result for every message, and decodes an encoded value to the same value [M7, S6]', () => {
    forAll(
      anyBody,
      (body) => {
        const batch = decodeBatch(body);
        if (batch.outcome === 'decoded') {
          expect(batch.batch.body).to.equal(body);
          const again = decodeBatch(sealBatch(batch.batch).body);
          expect(again.outcome === 'decoded' && { ...again.batch, body }).to.deep.equal(batch.batch);
        } else expect(batch.detail.length, 'fits a column').to.be.at.most(200);
        const events = decodeOrderEvents(body);
        if (events.outcome === 'decoded') {
          expect(decodeOrderEvents(encodeOrderEvents(events.events))).to.deep.equal(events);
        }
        const decoded = decodeOrderNotifications(body);
        if (decoded.outcome === 'decoded')
          expect(decodeOrderNotifications(encodeOrderNotifications(decoded.notifications))).to.deep.equal(decoded);
        const deadline = decodePaymentDeadline(body);
        if (deadline.outcome === 'decoded') {
          expect(decodePaymentDeadline(encodePaymentDeadline(deadline.deadline))).to.deep.equal(deadline);
        }
        for (const read of Object.values(BODY_READERS)) read(body);
      },
      run,
    );
    expectNothingSticks();
  });

  it('shows a dead letter with any body [M7, S6]', () => {
    forAll(anyBody, (body) => void JSON.stringify(deadLetterBody(storedDeadLetter({ body }))), run);
  });

  it('returns a result for every request body [S6]', () => {
    forAll(
      anyBody,
      (body) => {
        const wanted = readWanted(body);
        if (typeof wanted === 'string') expect(wanted.length, 'stays short').to.be.below(300);
        else expect(wanted.metadata === undefined || isMetadata(wanted.metadata)).to.equal(true);
        const json = parseJson(body, 'The body');
        if ('value' in json) {
          const read = readNewSale(json.value, 0);
          expect('sale' in read || read.errors.length > 0, 'says what is wrong').to.equal(true);
        } else expect(json.error.length, 'stays short').to.be.below(200);
        readPaymentEvent(body);
      },
      run,
    );
    expectNothingSticks();
  });

  it('reads a Redis entry exactly as it was written, or rejects it [S6]', () => {
    const parts = fc.tuple(fc.constantFrom('held', 'ordered', 'released', 'paid', ''), bytes(8), fc.integer());
    const entry = fc.oneof(
      fc.string(),
      parts.map((words) => words.join(':')),
    );
    forAll(
      entry,
      (text) => {
        const read = parseRequestEntry(text);
        if (read !== null) expect(parseRequestEntry(formatRequestEntry(read))).to.deep.equal(read);
      },
      run,
    );
  });
});

function expectNothingSticks(): void {
  expect(({} as { polluted?: unknown }).polluted).to.equal(undefined);
  expect(Object.keys(Object.prototype)).to.deep.equal([]);
}
