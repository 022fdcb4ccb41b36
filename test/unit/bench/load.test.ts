import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { RequestSignatures, signRules } from '../../../src/admission/sign/request-signatures.js';
import { readKeyring } from '../../../src/core/hmac.js';
import { Seals } from '../../../src/admission/sign/seals.js';
import { noAdmissionMetrics } from '../../helpers/no-metrics.js';
import { addressIn } from '../../../bench/attack/attackers.js';
import { SlowHeaders } from '../../../bench/attack/slow-headers.js';
import { BenchError } from '../../../bench/bench-error.js';
import {
  BuyerPool,
  buyerRecord,
  headersAt,
  purchaseKeyAt,
  readRecords,
  splitSlice,
  userIdOf,
  type BuyerSlice,
} from '../../../bench/load/buyers.js';
import { credentialHeaders, signatureHeaders, withHeaders } from '../../../bench/load/credentials.js';
import { requestFrame } from '../../../bench/load/load.js';
import { LatencyHistogram } from '../../../bench/load/open-loop.js';
import { AnswerReader, dueAtMs, dueCount, RequestSender } from '../../../bench/load/request-sender.js';
import { loadResultOf, parseWrkOutput } from '../../../bench/load/wrk.js';
import { systemClock } from '../../../src/programs/system-clock.js';
import { until } from '../../chaos/harness/wait.js';

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
      const texts = answers.map(({ body, ...rest }) => ({ ...rest, body: body.toString() }));
      expect(texts, `pieces of ${size}`).to.deep.equal([
        { status: 202, closes: false, body: '{"a":1}' },
        { status: 409, closes: false, body: '' },
        { status: 503, closes: true, body: 'abc' },
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

const KEYS = {
  sign: 's1:a-secret-that-signs-in-the-tests-of-the-load',
  seal: 'q1:a-secret-that-seals-in-the-tests-of-the-load',
};
const PATH = '/v1/sales/7/purchases';

describe('buyers with credentials', () => {
  const dir = mkdtempSync(join(tmpdir(), 'seckill-signed-buyers-'));
  after(() => rmSync(dir, { recursive: true, force: true }));

  function bare(count: number): BuyerSlice {
    const path = join(dir, 'bare.bin');
    const record = (index: number): string => buyerRecord('aaa.bbb.ccc', `key-${String(index).padStart(4, '0')}`);
    writeFileSync(path, Array.from({ length: 100 }, (_, index) => record(index)).join(''), 'latin1');
    return { path, recordBytes: record(0).length, first: 40, count };
  }

  it('keep what they had, in their order, and show a signature that is believed once', async () => {
    const headersOf = signatureHeaders(KEYS.sign, PATH);
    const signed = await withHeaders(bare(3), join(dir, 'signed.bin'), headersOf);
    const records = readRecords(signed);
    const headers = [0, 1, 2].map((place) => headersAt(records, signed.recordBytes, place));
    expect(headers.map((one) => one['Idempotency-Key'])).to.deep.equal(['key-0040', 'key-0041', 'key-0042']);

    const used = new Set<string>();
    const signatures = new RequestSignatures({
      rules: () => signRules.parse({ mode: 'on', keys: ['s1'] }),
      keys: readKeyring(KEYS.sign),
      nonces: { take: (_keyId, nonce) => Promise.resolve(used.size === used.add(nonce).size ? 'used' : 'fresh') },
      clock: systemClock,
      metrics: noAdmissionMetrics,
    });
    for (const one of [...headers, headers[0] ?? {}].entries()) {
      const head = signatures.begin('7', one[1]);
      if (head === null || typeof head === 'string') throw new Error('the head is not well-formed');
      const place = one[0] % 3;
      const sent = { userId: userIdOf(40 + place), idempotencyKey: `key-004${place}` };
      const refused = await signatures.finish(head, { method: 'POST', path: PATH, body: '{"quantity":1}', ...sent });
      expect(refused, `request ${one[0]}`).to.equal(one[0] < 3 ? null : 'bad_signature');
    }
  });

  it('records of different lengths are an error', async () => {
    let calls = 0;
    const growing = (): string => `X: ${'x'.repeat(++calls)}\r\n`;
    const error = await withHeaders(bare(3), join(dir, 'growing.bin'), growing).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(BenchError);
  });

  it('show seals of their own user and sale', () => {
    const text = credentialHeaders(KEYS, '7', PATH)(userIdOf(5), 'key-0005');
    const shown = /seckill-purchase-token: (\S+)\r\nseckill-queue-pass: (\S+)\r\n$/.exec(text) ?? [];
    const seals = new Seals(readKeyring(KEYS.seal));
    const opens = (kind: 'purchase-token' | 'queue-pass', userId: string, seal = ''): boolean =>
      seals.open({ kind, saleId: '7', userId }, seal) !== null;
    expect(opens('purchase-token', userIdOf(5), shown[1])).to.equal(true);
    expect(opens('queue-pass', userIdOf(5), shown[2])).to.equal(true);
    expect(opens('queue-pass', userIdOf(6), shown[2])).to.equal(false);
  });
});

const WAIT = { everyMs: 10 };

/** Against a server of node:http alone: what clients do must not depend on the product. */
describe('clients on raw sockets', () => {
  let server: Server;

  async function serve(answer: (req: IncomingMessage, res: ServerResponse) => void, options = {}): Promise<number> {
    server = createServer(options, answer);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  }

  afterEach(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );

  const request = (): Buffer => Buffer.from('POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}');

  it('a sender sends what is due and no more, and its addresses take turns', async () => {
    const asked = new Map<string, number>();
    const port = await serve((req, res) => {
      const address = req.socket.remoteAddress ?? '';
      asked.set(address, (asked.get(address) ?? 0) + 1);
      res.writeHead(address === addressIn('flood', 0) ? 403 : 429, { 'Content-Length': 0 }).end();
    });
    const addressOf = (place: number): string => addressIn('flood', place % 4);
    const answered: number[] = [];
    const statuses: number[] = [];
    const note = (place: number, status: number): void => {
      answered.push(place);
      statuses.push(status);
    };
    const sender = new RequestSender({
      port,
      connections: 8,
      addressOf,
      inTurn: true,
      rate: 1000,
      total: 40,
      request,
      onAnswer: note,
    });
    await sender.start();
    const sendUntil = async (elapsedMs: number, count: number): Promise<void> => {
      const done = (): boolean => {
        sender.sendDue(elapsedMs);
        return answered.length >= count && sender.isAnswered;
      };
      await until(`${count} answers came`, done, WAIT);
    };
    for (let elapsedMs = 0; elapsedMs < 8; elapsedMs++) await sendUntil(elapsedMs, elapsedMs + 1); // one is due at once
    expect(answered).to.have.length(8);
    expect([...asked.values()], 'two connections of each address').to.deep.equal([2, 2, 2, 2]);
    await sendUntil(60_000, 40);
    const denied = asked.get(addressIn('flood', 0)) ?? 0;
    sender.end();
    expect(sender).to.include({ sent: 40, answered: 40 });
    expect(statuses.filter((status) => status === 403)).to.have.length(denied);
    expect(answered.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 40 }, (_, place) => place));
  });

  it('a connection that the server closes is opened again, from the same address', async () => {
    const sockets = new Set<unknown>();
    const statuses: number[] = [];
    const port = await serve((req, res) => {
      sockets.add(req.socket);
      expect(req.socket.remoteAddress).to.equal(addressIn('oversized', 0));
      res.writeHead(413, { 'Content-Length': 0, Connection: 'close' }).end();
    });
    const sender = new RequestSender({
      port,
      connections: 1,
      rate: 1000,
      total: 3,
      request,
      inTurn: true,
      addressOf: (place) => addressIn('oversized', place),
      onAnswer: (_place, status) => void statuses.push(status),
    });
    await sender.start();
    const done = (): boolean => {
      sender.sendDue(1000);
      return sockets.size === 3 && sender.isAnswered;
    };
    await until('three connections are answered', done, WAIT);
    sender.end();
    expect(sender).to.include({ sent: 3, answered: 3 });
    expect(statuses).to.deep.equal([413, 413, 413]);
  });

  it('slow connections never finish a request, are closed by headersTimeout, and are opened again', async () => {
    let requests = 0;
    const port = await serve(() => requests++, { headersTimeout: 300, connectionsCheckingInterval: 50 });
    server.on('clientError', (_error, socket) =>
      socket.end('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n'),
    );
    const slow = new SlowHeaders({ port, path: '/x', sockets: 3, addressOf: (place) => addressIn('slow', place) });
    await until('all are closed and opened again', () => slow.tally.closed >= 6 && slow.tally.opened >= 9, WAIT);
    const { closed, answered408, longestMs } = slow.end();
    expect(answered408).to.equal(closed);
    expect(longestMs).to.be.at.least(250);
    expect(requests).to.equal(0);
  });

  it('slow connections that stay open count with their age', async () => {
    const port = await serve(() => undefined, { headersTimeout: 0, requestTimeout: 0 });
    const slow = new SlowHeaders({ port, path: '/x', sockets: 2, addressOf: (place) => addressIn('slow', place) });
    await until('both are open', () => slow.tally.opened === 2, WAIT);
    const openedMs = performance.now(); // their age counts from here at the latest; to open them may take its time
    await until('they grow old', () => performance.now() - openedMs > 100, WAIT);
    const { closed, longestMs } = slow.end();
    expect(closed).to.equal(0);
    expect(longestMs).to.be.at.least(100);
  });
});
