import { expect } from 'chai';
import fc from 'fast-check';
import {
  BATCH_SIZE_CEILING,
  decodeBatch,
  logFieldsOf,
  newBatchId,
  sealBatch,
  type Batch,
} from '../../../src/core/batch.js';
import { ID, USER_ID } from '../../../src/core/ids.js';
import { decodeOrderEvents, encodeOrderEvents } from '../../../src/core/order-event.js';
import { purchaseKey, type Purchase } from '../../../src/core/purchase.js';
import { purchaseOf, purchasesOf } from '../../helpers/sales.js';
import { metadatas } from '../../helpers/texts.js';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;

const sealed = (parts: Partial<Omit<Batch, 'body'>> = {}): Batch =>
  sealBatch({
    batchId: 'batch-1',
    saleId: '7',
    bucket: 0,
    epoch: 1,
    createdAtMs: 1_700_000_000_000,
    traceparent: '',
    purchases: purchasesOf('u1', 'u2*3'),
    ...parts,
  });

/** Returns a valid body with one field changed. */
const bodyWith = (field: string, value: unknown): string =>
  JSON.stringify({ ...JSON.parse(sealed().body), [field]: value });

describe('batch', () => {
  it('has a unique id that commands accept unchanged', () => {
    const ids = Array.from({ length: 1_000 }, newBatchId);
    for (const id of ids) expect(id).to.match(/^[A-Za-z][A-Za-z0-9_-]{21}$/);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('is encoded with short names and with purchases as triples', () => {
    expect(JSON.parse(sealed({ traceparent: TRACEPARENT }).body)).to.deep.equal({
      v: 1,
      batchId: 'batch-1',
      saleId: '7',
      bucket: 0,
      epoch: 1,
      createdAt: 1_700_000_000_000,
      trace: TRACEPARENT,
      purchases: [
        ['u1', 'k1', 1],
        ['u2', 'k1', 3],
      ],
    });
  });

  it('carries any accepted metadata and ids, also as an event', () => {
    fc.assert(
      fc.property(metadatas, fc.stringMatching(USER_ID), fc.stringMatching(ID), (metadata, userId, requestId) => {
        const purchase = { userId, requestId, quantity: 1, metadata };
        const sent = Buffer.from(sealed({ purchases: [purchase] }).body).toString();
        expect(decodeBatch(sent)).to.have.deep.nested.property('batch.purchases', [purchase]);
        const event = { eventId: 'e', type: 'order.created', saleId: '7', orders: ['9'], atMs: 0 } as const;
        const events = [{ ...event, metadata: { '9': metadata } }];
        expect(decodeOrderEvents(encodeOrderEvents(events))).to.deep.equal({ outcome: 'decoded', events });
      }),
    );
  });

  it('keeps its original bytes if it has no metadata or trace ids', () => {
    expect(sealed().body).to.equal(
      '{"v":1,"batchId":"batch-1","saleId":"7","bucket":0,"epoch":1,"createdAt":1700000000000,"trace":"",' +
        '"purchases":[["u1","k1",1],["u2","k1",3]]}',
    );
  });

  it('has a newer version if it has metadata, so that an older program parks it', () => {
    const [u1, u2] = purchasesOf('u1', 'u2*3');
    const batch = sealed({ purchases: [u1 as Purchase, { ...(u2 as Purchase), metadata: { cart: '42' } }] });
    expect(JSON.parse(batch.body)).to.deep.include({
      v: 2,
      purchases: [
        ['u1', 'k1', 1],
        ['u2', 'k1', 3, { cart: '42' }],
      ],
    });
    expect(decodeBatch(batch.body)).to.deep.equal({ outcome: 'decoded', batch });
  });

  it('keeps its version if it has trace ids, so that an older program records it', () => {
    const [u1, u2] = purchasesOf('u1', 'u2*3');
    const batch = sealed({ purchases: [u1 as Purchase, { ...(u2 as Purchase), traceId: TRACE_ID }] });
    const { traces, ...rest } = JSON.parse(batch.body) as Record<string, unknown>;
    expect(traces).to.deep.equal([[1, TRACE_ID]]);
    expect(JSON.stringify(rest)).to.equal(sealed().body);
    expect(decodeBatch(batch.body)).to.deep.equal({ outcome: 'decoded', batch });
  });

  it('drops an invalid trace id or traceparent and keeps the purchase [M7]', () => {
    const { purchases } = sealed();
    const none = ['x', 7, null, {}, [7], [['x', TRACE_ID]], [[2, TRACE_ID]], [[-1, TRACE_ID]], [[0.5, TRACE_ID]]];
    for (const traces of [...none, [[0, TRACE_ID.toUpperCase()]], [[0, '0'.repeat(32)]], [[0]], [[0, 7]], [null]]) {
      const decoded = decodeBatch(bodyWith('traces', traces));
      expect(decoded.outcome === 'decoded' && decoded.batch.purchases, JSON.stringify(traces)).to.deep.equal(purchases);
    }
    for (const trace of [TRACE_ID, 'abc', TRACEPARENT.toUpperCase()]) {
      const decoded = decodeBatch(bodyWith('trace', trace));
      expect(decoded.outcome === 'decoded' && decoded.batch.traceparent, trace).to.equal('');
    }
  });

  it('is named once in a log line, with each trace of its purchases', () => {
    const traced = { ...purchaseOf('u1'), traceId: TRACE_ID };
    expect(logFieldsOf(sealed())).to.deep.equal({ batchId: 'batch-1' });
    expect(logFieldsOf(sealed({ purchases: [traced, { ...traced, userId: 'u2' }] }))).to.deep.equal({
      batchId: 'batch-1',
      traceIds: [TRACE_ID],
    });
    expect(logFieldsOf({ batchId: 'batch-1' })).to.deep.equal({ batchId: 'batch-1' });
  });

  for (const metadata of [null, {}, [], 'x', { a: 1 }, { '': 'x' }, { a: 'x'.repeat(512) }]) {
    it(`is undecodable with the metadata ${JSON.stringify(metadata).slice(0, 20)} [M7, S6]`, () => {
      const body = bodyWith('purchases', [['u1', 'k1', 1, metadata]]).replace('"v":1', '"v":2');
      expect(decodeBatch(body)).to.deep.equal({ outcome: 'undecodable', detail: 'purchase 0 has bad metadata' });
    });
  }

  it('reads any batch back unchanged', () => {
    const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
    const metadata = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.string({ maxLength: 20 }), {
      minKeys: 1,
      maxKeys: 3,
      noNullPrototype: true,
    });
    const parts = { userId: id, requestId: id, quantity: fc.integer({ min: 1, max: 1000 }) };
    const traceId = fc.stringMatching(/^[0-9a-f]{31}[1-9a-f]$/);
    const purchase = fc.oneof(
      fc.record(parts),
      fc.record({ ...parts, metadata }),
      fc.record({ ...parts, traceId }),
      fc.record({ ...parts, metadata, traceId }),
    );
    fc.assert(
      fc.property(
        fc.record({
          batchId: id,
          saleId: fc.stringMatching(/^[1-9][0-9]{0,17}$/),
          bucket: fc.nat(),
          epoch: fc.integer({ min: 1 }),
          createdAtMs: fc.nat({ max: 4e12 }),
          traceparent: fc.constantFrom('', TRACEPARENT),
          purchases: fc.uniqueArray(purchase, { minLength: 1, maxLength: 30, selector: purchaseKey }),
        }),
        (parts) => {
          const batch = sealBatch(parts);
          expect(decodeBatch(batch.body)).to.deep.equal({ outcome: 'decoded', batch });
        },
      ),
      { numRuns: 100 },
    );
  });

  it('returns a result for any input and never throws [M7]', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (body) => void decodeBatch(body)));
    for (const body of ['', 'null', '[]', '1', '"x"', '{', '[{"v":2}]']) {
      expect(decodeBatch(body).outcome, body).to.equal('undecodable');
    }
  });

  it('distinguishes a version that a later program can read from an undecodable body [M7]', () => {
    for (const version of [0, 3, '1', null, undefined]) {
      expect(decodeBatch(bodyWith('v', version)).outcome).to.equal('unknown_version');
    }
  });

  const good = ['u1', 'k1', 1];
  const bad: readonly [field: string, values: readonly unknown[], detail: RegExp][] = [
    ['batchId', ['', 'a}b', 7], /batchId/],
    ['saleId', [7, '07', '7}:x{', '1234567890123456789'], /saleId/],
    ['bucket', [-1, 0.5, '0'], /bucket/],
    ['epoch', [0, 1.5], /epoch/],
    ['createdAt', [-1, 'now'], /createdAt/],
    ['trace', ['x'.repeat(129), null], /trace/],
    ['purchases', [[], {}], /non-empty list/],
    ['purchases', [[['u1', 'k1']], [['u1', 'k1', 1, 1]], ['u1']], /not a list of 3 values/],
    ['purchases', [[['u 1', 'k1', 1]]], /purchase 0 has a bad id/],
    ['purchases', [[good, ['u2', 'k/1', 1]]], /purchase 1 has a bad id/],
    ['purchases', [0, 1001, '1', 1.5].map((quantity) => [['u1', 'k1', quantity]]), /bad quantity/],
    ['purchases', [Array.from({ length: BATCH_SIZE_CEILING + 1 }, (_, i) => ['u', `k${i}`, 1])], /more than/],
  ];
  for (const [field, values, detail] of bad) {
    it(`is undecodable and says why if ${field} is wrong: ${detail.source} [M7, S6]`, () => {
      for (const value of values) {
        const decoded = decodeBatch(bodyWith(field, value));
        expect(decoded.outcome, JSON.stringify(value).slice(0, 40)).to.equal('undecodable');
        expect(decoded).to.have.property('detail').that.matches(detail);
      }
    });
  }

  it('allows each key once, and equal request ids for two buyers [G5]', () => {
    expect(
      decodeBatch(
        bodyWith('purchases', [
          ['u1', 'k1', 1],
          ['u1', 'k1', 2],
        ]),
      ).outcome,
    ).to.equal('undecodable');
    expect(
      decodeBatch(
        bodyWith('purchases', [
          ['u1', 'k1', 1],
          ['u2', 'k1', 1],
        ]),
      ).outcome,
    ).to.equal('decoded');
  });

  it('accepts exactly the maximum number of purchases', () => {
    const crowd = Array.from({ length: BATCH_SIZE_CEILING }, (_, index) => purchaseOf(`u${index}`));
    expect(decodeBatch(sealed({ purchases: crowd }).body).outcome).to.equal('decoded');
  });

  it('never turns names in a message into fields of other objects', () => {
    const body = sealed().body.replace('{', '{"__proto__":{"polluted":1},');
    expect(decodeBatch(body).outcome).to.equal('decoded');
    expect(({} as { polluted?: number }).polluted).to.equal(undefined);
  });
});
