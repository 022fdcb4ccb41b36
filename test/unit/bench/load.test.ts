import { expect } from 'chai';
import { BenchError } from '../../../bench/bench-error.js';
import { BuyerPool, buyerRecord, headersAt, purchaseKeyAt, splitSlice, userIdOf } from '../../../bench/load/buyers.js';
import { AnswerReader } from '../../../bench/load/http-answers.js';
import { LatencyHistogram } from '../../../bench/load/latency-histogram.js';
import { requestFrame } from '../../../bench/load/load.js';
import { dueAtMs, dueCount } from '../../../bench/load/open-loop.js';
import { loadResultOf, parseWrkOutput } from '../../../bench/load/wrk.js';

describe('open-loop schedule', () => {
  it('due times keep the rate, whatever happened in between', () => {
    expect([0, 1, 2000].map((place) => dueAtMs(place, 2000))).to.deep.equal([0, 0.5, 1000]);
    expect([0, 0.4, 0.5, 1000].map((elapsedMs) => dueCount(elapsedMs, 2000))).to.deep.equal([1, 1, 2, 2001]);
  });

  it('after a stall everything that became due meanwhile is due at once', () => {
    expect(dueCount(3000, 1000) - dueCount(1000, 1000)).to.equal(2000);
  });
});

describe('LatencyHistogram', () => {
  it('a stall counts for every request that was due in it, not only for the one that met it', () => {
    const corrected = new LatencyHistogram();
    const naive = new LatencyHistogram();
    // One request per ms for 1 s, each answered in 1 ms, but for a stall of 500 ms in the middle.
    for (let place = 0; place < 1000; place++) {
      const due = dueAtMs(place, 1000);
      const sent = due >= 250 && due < 750 ? 750 : due;
      corrected.record(due, sent + 1);
      naive.record(sent, sent + 1);
    }
    expect(naive.summary().p99).to.be.closeTo(1, 0.1);
    expect(corrected.summary().p50).to.be.within(1, 5);
    expect(corrected.summary().p99).to.be.closeTo(491, 2);
    expect(corrected.count).to.equal(1000);
  });

  it('a latency beyond two minutes or below zero is kept at the edge', () => {
    const histogram = new LatencyHistogram();
    histogram.record(0, 500_000);
    histogram.record(10, 9);
    expect(histogram.summary().max).to.be.closeTo(120_000, 200);
  });
});

describe('wrk output', () => {
  const report =
    '{"sent":1000,"stray":2,"ranOut":1,"startedAtMs":1000.5,"endedAtMs":2000.5,"answered":1001,"refused":9,' +
    '"socketErrors":1,"timeouts":2,"p50":1500,"p99":20000,"p999":30000,"max":40000}';

  it('the line of the script is found among what wrk prints itself', () => {
    const result = loadResultOf(parseWrkOutput(`Running 33s test\n  1 threads\nRESULT ${report}\nDone\n`), 1.5);
    expect(result).to.deep.equal({
      sent: 1000,
      answered: 999, // two answers were to stray requests
      accepted: 990,
      errors: 3,
      startedAtMs: 1000.5,
      endedAtMs: 2000.5,
      latency: { p50: 1.5, p99: 20, p999: 30, max: 40 },
      ranOutOfBuyers: true,
      cpuSeconds: 1.5,
    });
  });

  it('without it, the error shows what wrk said instead', () => {
    expect(() => parseWrkOutput('unable to connect to 127.0.0.1:9 Connection refused')).to.throw(
      BenchError,
      'Connection refused',
    );
    expect(() => parseWrkOutput('')).to.throw(BenchError, 'silent');
  });
});

describe('AnswerReader', () => {
  const answer = (status: number, body: string, extra = ''): string =>
    `HTTP/1.1 ${status} Some Word\r\nDate: x\r\n${extra}Content-Length: ${body.length}\r\n\r\n${body}`;

  it('answers that arrive in any pieces are read whole', () => {
    const bytes = Buffer.from(answer(202, '{"a":1}') + answer(409, '') + answer(503, 'abc', 'Connection: close\r\n'));
    for (let size = 1; size <= bytes.length; size++) {
      const reader = new AnswerReader();
      const answers = [];
      for (let from = 0; from < bytes.length; from += size)
        answers.push(...reader.read(bytes.subarray(from, from + size)));
      expect(answers, `pieces of ${size}`).to.deep.equal([
        { status: 202, closes: false },
        { status: 409, closes: false },
        { status: 503, closes: true },
      ]);
    }
  });

  it('an answer without a length is refused, not guessed', () => {
    const chunked = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n');
    expect(() => new AnswerReader().read(chunked)).to.throw('without Content-Length');
  });
});

describe('prepared buyers', () => {
  const record = buyerRecord('aaa.bbb.ccc', '11111111-2222-3333-4444-555555555555');
  const file = { path: 'none', recordBytes: record.length, count: 100 };

  it('a record and its frame are one whole request', () => {
    const { head, tail } = requestFrame({ port: 8080, path: '/v1/sales/7/purchases' });
    expect(`${head}${record}${tail}`).to.equal(
      'POST /v1/sales/7/purchases HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n' +
        'Content-Length: 14\r\nAuthorization: Bearer aaa.bbb.ccc\r\n' +
        'Idempotency-Key: 11111111-2222-3333-4444-555555555555\r\n\r\n{"quantity":1}',
    );
  });

  it('headers and purchase key are found by place', () => {
    const records = Buffer.from(record + record.replace('1111', '9999'), 'latin1');
    expect(headersAt(records, record.length, 0)).to.deep.equal({
      Authorization: 'Bearer aaa.bbb.ccc',
      'Idempotency-Key': '11111111-2222-3333-4444-555555555555',
    });
    const key = purchaseKeyAt(records, { ...file, first: 40 }, 1);
    expect(key).to.equal(`${userIdOf(41)}/99991111-2222-3333-4444-555555555555`);
  });

  it('loads get different buyers until the file is used up, then it begins again', () => {
    const pool = new BuyerPool(file);
    expect([60, 30, 20].map((count) => pool.take(count).first)).to.deep.equal([0, 60, 0]);
    expect(() => pool.take(101)).to.throw(BenchError, '101 buyers are needed');
  });

  it('a slice is split without a gap or an overlap', () => {
    const [first, others] = splitSlice({ ...file, first: 10, count: 50 }, 20);
    expect([first.first, first.count, others.first, others.count]).to.deep.equal([10, 20, 30, 30]);
  });
});
