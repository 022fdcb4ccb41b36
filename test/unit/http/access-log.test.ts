import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { problem, json, type Answer } from '../../../src/http/answer.js';
import { AccessLog, openLineSink, type AccessLogOptions, type LoggedRequest } from '../../../src/http/access-log.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { bearer, FakeServices, startServer } from './http-harness.js';

const OPTIONS: AccessLogOptions = { kind: 'all', sampleEvery: 3, perSecondMax: 1000 };
const REFUSED = problem('limit_reached', { detail: 'You have as many units as one buyer may have.' });
const DONE = json(200, 'found', { orderId: '42' });

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';

const requestOf = (parts: Partial<LoggedRequest> = {}): LoggedRequest => ({
  counter: { route: 'purchase' },
  requestId: 'k-1',
  userId: 'alice',
  params: { saleId: '7' },
  traceId: TRACE_ID,
  ...parts,
});

describe('access log', () => {
  let written: string;
  let write: (lines: string) => Promise<void>;
  let skipped: number;
  let clock: ManualClock;
  beforeEach(() => {
    [written, skipped] = ['', 0];
    write = async (lines) => void (written += lines);
    clock = new ManualClock();
  });

  const open = (options: Partial<AccessLogOptions> = {}): AccessLog => {
    const all = { ...OPTIONS, ...options };
    const sink = { write: (text: string) => write(text), close: () => Promise.resolve() };
    return new AccessLog(all, sink, clock, (count) => (skipped += count));
  };
  const lines = (): Record<string, unknown>[] =>
    written
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const noteAll = async (log: AccessLog, answers: readonly Answer[]): Promise<void> => {
    for (const answer of answers) log.note(requestOf(), answer, 1.2345);
    await log.close();
  };

  it('names the caller, the refusal with its time and reason, and the duration', async () => {
    await noteAll(open(), [REFUSED, DONE]);
    const common = { time: new Date(clock.nowMs()).toISOString(), route: 'purchase', request: 'k-1', user: 'alice' };
    expect(lines()).to.deep.equal([
      {
        ...common,
        status: 409,
        code: 'limit_reached',
        reason: 'You have as many units as one buyer may have.',
        sale: '7',
        trace: TRACE_ID,
        ms: 1.23,
      },
      { ...common, status: 200, code: 'found', sale: '7', trace: TRACE_ID, ms: 1.23 },
    ]);
  });

  it('omits unknown fields, and shortens an unchecked id in a path', async () => {
    const log = open();
    log.note(requestOf({ requestId: null, userId: '', params: { saleId: 'x'.repeat(8000) } }), REFUSED, 0);
    log.note(requestOf({ params: null }), DONE, 0);
    await log.close();
    expect(Object.keys(lines()[0] ?? {})).to.deep.equal([
      'time',
      'route',
      'status',
      'code',
      'reason',
      'sale',
      'trace',
      'ms',
    ]);
    expect(lines()[0]?.sale).to.equal('x'.repeat(64));
    expect(lines()[1]).not.to.have.property('sale');
  });

  it('logs only refusals, a sample, or all requests up to a maximum per second', async () => {
    await noteAll(open({ kind: 'refusals' }), [DONE, REFUSED, DONE]);
    expect(lines().map(({ code }) => code)).to.deep.equal(['limit_reached']);

    written = '';
    await noteAll(open({ kind: 'sampled' }), Array<Answer>(7).fill(DONE));
    expect(lines()).to.have.length(3);

    written = '';
    const log = open({ perSecondMax: 2 });
    for (let i = 0; i < 5; i++) log.note(requestOf(), DONE, 0);
    clock.advance(1000);
    await noteAll(log, [DONE]);
    expect(lines().map(({ code, skipped: left }) => code ?? left)).to.deep.equal(['found', 'found', 'found', 3]);
    expect(skipped).to.equal(3);
  });

  it('drops and counts lines while writing fails, and tries again with later lines', async () => {
    const log = open();
    write = () => Promise.reject(new Error('ENOSPC'));
    await noteAll(log, [DONE, DONE]);
    expect([written, skipped]).to.deep.equal(['', 2]);
    write = async (text) => void (written += text);
    await noteAll(log, [REFUSED]);
    expect(lines().map(({ code, skipped: left }) => code ?? left)).to.deep.equal(['limit_reached', 2]);
    expect(skipped).to.equal(2);
  });

  it('buffers at most five seconds of lines during a slow write', async () => {
    const log = open({ perSecondMax: 2 });
    let finish: () => void = () => undefined;
    write = (text) =>
      new Promise((resolve) => {
        written += text;
        finish = resolve;
      });
    log.note(requestOf(), DONE, 0);
    const closing = log.close();
    await new Promise((resolve) => setImmediate(resolve)); // The first write is still running.
    for (let second = 0; second < 8; second++) {
      clock.advance(1000);
      for (let i = 0; i < 2; i++) log.note(requestOf(), DONE, 0);
    }
    expect(skipped).to.equal(6);
    write = async (text) => void (written += text);
    finish();
    await closing;
    await log.close();
    expect(lines().filter(({ code }) => code === 'found')).to.have.length(11);
  });

  it('appends to a file, and reports at once if it cannot be opened', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'access-log-'));
    try {
      const file = join(folder, 'access.jsonl');
      for (const line of ['one\n', 'two\n']) {
        const sink = await openLineSink(file);
        await sink.write(line);
        await sink.close();
      }
      expect(readFileSync(file, 'utf8')).to.equal('one\ntwo\n');
      const failed = await openLineSink(join(folder, 'no', 'such')).catch((error: NodeJS.ErrnoException) => error.code);
      expect(failed).to.equal('ENOENT');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('starts no new line for control characters from a user', async () => {
    const log = open();
    log.note(requestOf({ userId: 'mallory\n{"user":"alice"}\u001b[2J' }), REFUSED, 0);
    await log.close();
    expect(written.split('\n')).to.have.length(2);
    expect(written).not.to.include('\u001b');
  });

  it('logs no token, body, address, query or header of a request', async () => {
    const log = open();
    const fake = new FakeServices({ accessLog: log });
    const server = await startServer(fake);
    const token = bearer('alice', []);
    try {
      await fetch(`${server.url}/v1/sales/7/purchases?secret=in-query`, {
        method: 'POST',
        headers: {
          authorization: token,
          'content-type': 'application/json',
          'Idempotency-Key': 'k-1',
          'user-agent': 'secret-agent',
          cookie: 'secret=1',
        },
        body: '{"quantity":"secret-in-body","secret-field":1}',
      });
      await fetch(`${server.url}/nowhere/secret-path?secret=1`, { headers: { authorization: token } });
      await log.close();
      expect(lines().map(({ route, code, user }) => [route, code, user])).to.deep.equal([
        ['purchase', 'bad_request', 'alice'],
        ['other', 'route_not_found', undefined],
      ]);
      expect(written).not.to.match(/secret|Bearer|eyJ|192\.0\.2\.1|127\.0\.0\.1/);
      expect(fake.timed).to.deep.equal(['purchase refused', 'other refused']);
    } finally {
      await server.stop();
    }
  });
});
