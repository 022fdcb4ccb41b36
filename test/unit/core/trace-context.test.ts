import { expect } from 'chai';
import fc from 'fast-check';
import { newBatchId } from '../../../src/core/batch.js';
import {
  batchIdOfTrace,
  isTraceId,
  newTraceId,
  readTraceparent,
  traceIdOfBatch,
  traceIdsOf,
  traceparentOf,
  traceProperty,
  typedTraceId,
} from '../../../src/core/trace-context.js';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const GOOD = `00-${TRACE_ID}-${SPAN_ID}-01`;

describe('trace context', () => {
  it('reads well-formed headers and their sampled flag', () => {
    const read = { traceId: TRACE_ID, spanId: SPAN_ID };
    expect(readTraceparent(GOOD)).to.deep.equal({ ...read, isSampled: true });
    for (const [flags, isSampled] of [
      ['00', false],
      ['02', false],
      ['03', true],
      ['ff', true],
    ] as const) {
      expect(readTraceparent(`00-${TRACE_ID}-${SPAN_ID}-${flags}`), flags).to.deep.equal({ ...read, isSampled });
    }
    expect(readTraceparent(`01${GOOD.slice(2)}`), 'a later version').to.deep.equal({ ...read, isSampled: true });
    expect(readTraceparent(`cc${GOOD.slice(2)}-more-of-it`)).to.deep.equal({ ...read, isSampled: true });
  });

  for (const [what, text] of [
    ['nothing', ''],
    ['a version that is forbidden', `ff${GOOD.slice(2)}`],
    ['a version that is not a number', `0x${GOOD.slice(2)}`],
    ['capitals', GOOD.toUpperCase()],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN_ID}-01`],
    ['a span id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['flags that are no number', `00-${TRACE_ID}-${SPAN_ID}-0x`],
    ['no flags', GOOD.slice(0, 53)],
    ['one digit less', GOOD.slice(0, 54)],
    ['one digit more', `${GOOD}0`],
    ['more behind version 00', `${GOOD}-more`],
    ['no dash behind a later version', `01${GOOD.slice(2)}0more`],
    ['other separators', GOOD.replaceAll('-', '_')],
    ['a blank in front', ` ${GOOD}`],
    ['two of them', `${GOOD}, ${GOOD}`],
    ['a control character', `00-${TRACE_ID.slice(1)}\u0000-${SPAN_ID}-01`],
    ['digits of another script', `00-${'٣'.repeat(32)}-${SPAN_ID}-01`],
    ['a long text', '0'.repeat(100_000)],
  ] as const) {
    it(`refuses ${what} [S6]`, () => expect(readTraceparent(text)).to.equal(null));
  }

  it('accepts exactly what the pattern of the standard accepts [S6]', () => {
    const pattern = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/;
    const isGood = (text: string): boolean => pattern.test(text) && (text.length === 55 || !text.startsWith('00'));
    const hex = (length: number) => fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`));
    const near = fc
      .tuple(hex(2), fc.constantFrom('-', '_'), hex(32), hex(16), hex(2), fc.constantFrom('', '-', '0', '-x'))
      .map(([version, dash, trace, span, flags, rest]) => `${version}${dash}${trace}-${span}-${flags}${rest}`);
    const broken = fc
      .tuple(near, fc.nat({ max: 60 }), fc.string({ maxLength: 2 }))
      .map(([text, at, other]) => text.slice(0, at) + other + text.slice(at + other.length));
    fc.assert(
      fc.property(fc.oneof(near, broken, fc.string()), (text) => {
        expect(readTraceparent(text) !== null, text).to.equal(isGood(text));
      }),
      { numRuns: 2000 },
    );
  });

  it('writes a span as a header that reads back unchanged', () => {
    const traceparent = traceparentOf({ traceId: TRACE_ID, spanId: SPAN_ID });
    expect(traceparent).to.equal(GOOD);
    expect(traceProperty(traceparent)).to.deep.equal({ traceparent });
    expect([traceProperty(''), traceProperty(undefined)]).to.deep.equal([{}, {}]);
  });

  it('makes well-formed and unique trace ids', () => {
    const ids = Array.from({ length: 2_000 }, newTraceId);
    for (const id of ids) expect(isTraceId(id), id).to.equal(true);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('derives a trace id from a batch id, and none from any other text', () => {
    for (let i = 0; i < 100; i++) {
      const batchId = newBatchId();
      const traceId = traceIdOfBatch(batchId);
      expect(isTraceId(traceId)).to.equal(true);
      expect(traceIdOfBatch(batchId), 'asked again').to.equal(traceId);
      expect(batchIdOfTrace(traceId ?? '')).to.equal(batchId);
    }
    for (const other of ['batch-1', '', 'x', 'A'.repeat(21), 'A'.repeat(22), 'B'.repeat(23), `${'A'.repeat(21)}B`]) {
      expect(traceIdOfBatch(other), other).to.equal(null);
    }
    for (const other of ['', TRACE_ID.toUpperCase(), '0'.repeat(32), `${TRACE_ID}0`]) {
      expect(batchIdOfTrace(other), other).to.equal(null);
    }
  });

  it('accepts a typed trace id in upper case, or a whole traceparent', () => {
    for (const text of [TRACE_ID, TRACE_ID.toUpperCase(), GOOD]) expect(typedTraceId(text), text).to.equal(TRACE_ID);
    for (const text of ['order-1', '431234567890123456', newBatchId(), '0'.repeat(32)]) {
      expect(typedTraceId(text), text).to.equal(null);
    }
  });

  it('returns each trace id of several purchases once', () => {
    expect(traceIdsOf([{}, { traceId: TRACE_ID }, {}, { traceId: TRACE_ID }])).to.deep.equal([TRACE_ID]);
    expect(traceIdsOf([{}, {}])).to.deep.equal([]);
  });
});
