import { expect } from 'chai';
import fc from 'fast-check';
import { EventStreamReader, type StreamedEvent } from '../../../web/client/event-stream.js';

const STREAM =
  'retry: 2000\n\nid: pending\nevent: pending\ndata: {"a":1}\n\n:\n\nid: ordered\r\nevent: ordered\r\ndata: {"b":"é"}\r\ndata: 2\r\n\r\n';
const EVENTS: StreamedEvent[] = [
  { id: 'pending', event: 'pending', data: '{"a":1}' },
  { id: 'ordered', event: 'ordered', data: '{"b":"é"}\n2' },
];

describe('event stream read from a fetch', () => {
  it('yields the same events however the stream is split into chunks', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: STREAM.length - 1 })), (cuts) => {
        const reader = new EventStreamReader();
        const places = [0, ...cuts.sort((a, b) => a - b), STREAM.length];
        const events = places.slice(1).flatMap((to, i) => reader.push(STREAM.slice(places[i], to)));
        expect(events).to.deep.equal(EVENTS);
        expect(reader.retryMs).to.equal(2000);
      }),
    );
  });

  it('accepts a lone carriage return as a line end, at any chunk boundary', () => {
    const text = 'data: 1\r\rdata: 2\rdata: 3\r\n\r\ndata: 4\r\n\r\n';
    for (let size = 1; size <= text.length; size++) {
      const reader = new EventStreamReader();
      const events: StreamedEvent[] = [];
      for (let at = 0; at < text.length; at += size) events.push(...reader.push(text.slice(at, at + size)));
      expect(
        events.map(({ data }) => data),
        `pieces of ${size}`,
      ).to.deep.equal(['1', '2\n3', '4']);
    }
  });

  it('ignores comments, unknown fields, an invalid pause and an incomplete event', () => {
    const reader = new EventStreamReader();
    expect(reader.push(': hello\nnonsense\nretry: soon\nid: 1\n\ndata: x\n')).to.deep.equal([]);
    expect(reader.retryMs).to.equal(null);
    expect(reader.push('\n')).to.deep.equal([{ id: null, event: 'message', data: 'x' }]);
  });
});
