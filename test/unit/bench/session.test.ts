import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { BenchError } from '../../../bench/bench-error.js';
import { cpuTimes, parseMachineStat, parseStat, residentBytes } from '../../../bench/session/cpu.js';
import { growth, growthBy, parseMetrics, sumOf } from '../../../bench/session/metrics.js';
import { RulesAdmin } from '../../../bench/session/rules.js';
import { hmacAuth } from '../../helpers/authenticator.js';

describe('CPU of processes', () => {
  it('a program name with blanks and parentheses does not shift the fields', () => {
    const stat = '42 (node (a b) c) S 1 42 42 0 -1 4194304 100 200 3 4 1150 250 30 20 20 0 11 0 999 1 2';
    expect(parseStat(stat)).to.deep.equal({ own: 14, children: 0.5 });
  });

  it('of the machine, waiting for a disk and time taken by others is not work', () => {
    const { busy, all } = parseMachineStat('cpu  1000 100 500 3000 400 50 50 900 0 0\ncpu0 1 1 1 1');
    expect({ busy, all }).to.deep.equal({ busy: 17, all: 60 });
  });

  it('a process that is gone has none, and no memory', () => {
    const none = 2 ** 30;
    expect([cpuTimes(none), residentBytes(none)]).to.deep.equal([null, null]);
    if (process.platform === 'linux') expect(residentBytes(process.pid)).to.be.greaterThan(1e6);
  });
});

describe('metrics of a program', () => {
  const before = parseMetrics(
    '# HELP a b\nanswers{route="purchase",code="accepted"} 10\nanswers{code="x"} 1\nanswers_sum 5\n',
  );
  const after = parseMetrics('answers{route="purchase",code="accepted"} 25\nanswers{code="x"} 3\nheap 1.5e+06\n');

  it('series of one name are added, those of a longer name are not', () => {
    expect(sumOf(before, 'answers')).to.equal(11);
    expect(sumOf(after, 'answers', 'code="accepted"', 'route="purchase"')).to.equal(25);
    expect(sumOf(after, 'heap')).to.equal(1.5e6);
  });

  it('growth by label adds series with the same words, and leaves out what did not grow', () => {
    const refused = (...lines: string[]) => parseMetrics(lines.map((line) => `refusals${line}\n`).join(''));
    const [limits, dryRun] = ['{layer="limits",word="rate_limited",mode="on"}', '{layer="limits",word="rate_limited"}'];
    const earlier = refused(`${limits} 10`, '{layer="a",word="b"} 3');
    const later = refused(`${limits} 25`, `${dryRun} 1`, '{layer="a",word="b"} 3', '_more{layer="x",word="y"} 9');
    expect(growthBy(earlier, later, 'refusals', ['layer', 'word'])).to.deep.equal({ 'limits rate_limited': 16 });
  });

  it('growth is the difference, and a series that is new grew from zero', () => {
    expect(growth(before, after, 'answers')).to.equal(17);
    expect(growth(before, after, 'heap')).to.equal(1.5e6);
  });
});

const SECRET = 'a secret of the test with enough bytes';

/** The admin addresses of an api, as far as the bench uses them. New rules are in force after some polls of /metrics. */
class FakeApi {
  version = 3;
  rules: unknown = { lists: { mode: 'dry_run' } };
  readonly published: unknown[] = [];
  #inForce = 3;
  #polls = 0;
  readonly #auth = hmacAuth(SECRET, { cacheMax: 0 });
  readonly server: Server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const body = (text === '' ? {} : JSON.parse(text)) as { version?: number; rules?: Record<string, unknown> };
      if (req.url === '/metrics') return void res.end(`seckill_admission_rules_version ${this.#pollVersion()}\n`);
      const who = this.#auth.authenticate(req.headers.authorization);
      if (typeof who === 'string' || who instanceof Promise || !who.roles.includes('admin'))
        return void res.writeHead(403).end('{}');
      if (req.method === 'PUT') this.#publish(body);
      res.end(JSON.stringify({ version: this.version, rules: this.rules }));
    });
  });

  #publish({ version, rules }: { version?: number; rules?: unknown }): void {
    expect(version, 'made from the newest').to.equal(this.version);
    this.version++;
    this.rules = rules;
    this.published.push(rules);
    this.#polls = 0;
  }

  #pollVersion(): number {
    if (++this.#polls >= 3) this.#inForce = this.version;
    return this.#inForce;
  }

  get inForce(): boolean {
    return this.#inForce === this.version;
  }
}

describe('rules of a scenario', () => {
  let api: FakeApi;
  let admin: RulesAdmin;

  beforeEach(async () => {
    api = new FakeApi();
    await new Promise<void>((resolve) => api.server.listen(0, '127.0.0.1', resolve));
    const { port } = api.server.address() as AddressInfo;
    admin = new RulesAdmin(SECRET, () => port);
  });

  afterEach(
    () =>
      new Promise<void>((resolve) => {
        api.server.close(() => resolve());
        api.server.closeAllConnections();
      }),
  );

  it('are in force before the work begins, and those that were there before come back', async () => {
    const before = api.rules;
    const seen = await admin.during({ limits: { mode: 'on' } }, () => Promise.resolve([api.rules, api.inForce]));
    expect(seen).to.deep.equal([{ limits: { mode: 'on' } }, true]);
    expect(api.published).to.deep.equal([{ limits: { mode: 'on' } }, before]);
    expect(api.inForce).to.equal(true);
  });

  it('come back too when the work fails, and its error is thrown', async () => {
    const before = api.rules;
    const error = await admin.during({}, () => Promise.reject(new Error('broken'))).catch((thrown: unknown) => thrown);
    expect(error).to.have.property('message', 'broken');
    expect(api.rules).to.deep.equal(before);
  });

  it('what the api refuses is an error with its answer', async () => {
    const { port } = api.server.address() as AddressInfo;
    const anonymous = new RulesAdmin('another secret of the test with bytes', () => port);
    const error = await anonymous.during({}, () => Promise.resolve()).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(BenchError).with.property('message').that.includes('was answered 403');
  });
});
