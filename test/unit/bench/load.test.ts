import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../chaos/harness/wait.js';
import { runClosedLoop } from '../../../bench/load/closed-loop.js';
import { LatencyHistogram } from '../../../bench/load/latency.js';
import { dueAtMs, dueCount, RequestSender } from '../../../bench/load/request-sender.js';
import { judgeSale } from '../../../bench/session/stores.js';
import type { SaleCheck, SaleFigures } from '../../invariants/check-sale.js';

describe('open-loop schedule', () => {
  it('keeps to the rate of due times even if answers are slow', () => {
    expect([0, 1, 2000].map((place) => dueAtMs(place, 2000))).to.deep.equal([0, 0.5, 1000]);
    expect([0, 0.4, 0.5, 1000].map((elapsedMs) => dueCount(elapsedMs, 2000))).to.deep.equal([1, 1, 2, 2001]);
  });
});

describe('LatencyHistogram', () => {
  it('counts a stall for every request that was due during the stall', () => {
    const corrected = new LatencyHistogram();
    const naive = new LatencyHistogram();
    // Sends a request every ms for 1 s. Each is answered within 1 ms, except during a stall of 500 ms in the middle.
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
});

const WAIT = { everyMs: 10 };

/** Runs against a server of node:http, so that clients do not depend on the product. */
describe('clients on raw sockets', () => {
  let server: Server;

  async function serve(answer: (req: IncomingMessage, res: ServerResponse) => void): Promise<number> {
    server = createServer(answer);
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

  it('counts every answer of a closed loop in which each buyer asks once', async () => {
    const asked: string[] = [];
    const port = await serve((req, res) => {
      asked.push(String(req.headers.buyer));
      res.writeHead(asked.length % 10 === 0 ? 409 : 202, { 'Content-Length': 0 }).end();
    });
    const folder = mkdtempSync(join(tmpdir(), 'seckill-load-'));
    try {
      const names = Array.from({ length: 200 }, (_, place) => String(place).padStart(4, '0'));
      const records = names.map((name) => `Buyer: ${name}\r\n`);
      const path = join(folder, 'buyers');
      writeFileSync(path, records.join(''));
      const buyers = { path, recordBytes: 13, count: names.length, first: 0 };
      const plan = { port, path: '/x', buyers, connections: 8, seconds: 30 };
      const result = await runClosedLoop(plan, new AbortController().signal);
      const counts = { sent: 200, answered: 200, accepted: 180, errors: 0, ranOutOfBuyers: true };
      expect(result).to.include(counts);
      expect(result.latency.p50).to.be.above(0);
      expect(asked.sort()).to.deep.equal(names);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('repeats a request whose answers have no body', async () => {
    const port = await serve((req, res) => void res.writeHead(req.url === '/x' ? 304 : 500).end());
    const request = 'GET /x HTTP/1.1\r\nHost: x\r\n\r\n';
    const plan = { port, request, connections: 4, seconds: 1 };
    const { sent, answered, accepted } = await runClosedLoop(plan, new AbortController().signal);
    expect(answered).to.be.above(4).and.to.equal(sent);
    expect(accepted).to.equal(0);
  });

  it('sends each request once, and only when due', async () => {
    const port = await serve((_req, res) => void res.writeHead(429, { 'Content-Length': 0 }).end());
    const answered: number[] = [];
    const onAnswer = (place: number): void => void answered.push(place);
    const sender = new RequestSender({ port, connections: 8, rate: 1000, total: 40, request, onAnswer });
    await sender.start();
    const sendUntil = async (elapsedMs: number, count: number): Promise<void> => {
      const done = (): boolean => {
        sender.sendDue(elapsedMs);
        return answered.length >= count && sender.isAnswered;
      };
      await until(`${count} answers came`, done, WAIT);
    };
    // one request is due at once
    for (let elapsedMs = 0; elapsedMs < 8; elapsedMs++) await sendUntil(elapsedMs, elapsedMs + 1);
    expect(answered).to.have.length(8);
    await sendUntil(60_000, 40);
    sender.end();
    expect(sender).to.include({ sent: 40, answered: 40 });
    expect(answered.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 40 }, (_, place) => place));
  });
});

const figures = (changes: Partial<SaleFigures> = {}): SaleCheck => ({
  figures: {
    stock: 1000,
    sold: 100,
    unitsLeft: 900,
    rows: 100,
    liveRows: 100,
    failedRows: 0,
    oversold: 0,
    duplicates: 0,
    lost: 0,
    inTransit: 0,
    difference: 0,
    pendingBatches: 0,
    ...changes,
  },
  findings: [],
});

describe('check of a sale after its load (I1 to I5)', () => {
  const problemsOf = (answers: { accepted: number; unanswered: number }, check: SaleCheck): readonly string[] =>
    judgeSale(answers, check).problems;

  it('passes if there are as many orders as accepted requests', () => {
    expect(problemsOf({ accepted: 100, unanswered: 0 }, figures())).to.deep.equal([]);
  });

  it('reports an accepted request without an order as lost, even if Redis does not know the buyer', () => {
    const verdict = judgeSale({ accepted: 103, unanswered: 0 }, figures());
    expect(verdict.lost).to.equal(3);
    expect(verdict.problems).to.deep.equal(['3 accepted purchases have no order']);
  });

  it('fails if an order belongs to no accepted or unanswered request', () => {
    expect(problemsOf({ accepted: 98, unanswered: 2 }, figures())).to.deep.equal([]);
    expect(problemsOf({ accepted: 97, unanswered: 2 }, figures())).to.deep.equal([
      '1 orders belong to no accepted request',
    ]);
  });

  it('has a sentence for every wrong figure and finding', () => {
    const check = figures({ oversold: 1, duplicates: 1, lost: 1, difference: 1, failedRows: 1, pendingBatches: 1 });
    const findings = [{ invariant: 'I4', detail: 'a buyer counts 2 units' } as const];
    expect(problemsOf({ accepted: 100, unanswered: 0 }, { ...check, findings })).to.have.length(7);
  });
});
