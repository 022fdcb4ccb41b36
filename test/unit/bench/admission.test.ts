import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { BenchError } from '../../../bench/bench-error.js';
import { buyerRecord, headersAt, readRecords, userIdOf, type BuyerSlice } from '../../../bench/load/buyers.js';
import { dressBuyers, dresserOf, NOTHING_MORE } from '../../../bench/load/dressed-buyers.js';
import { compare, turnsOf, type Pair } from '../../../bench/paired/comparison.js';
import { layersTable, pairedTable } from '../../../bench/report/admission-tables.js';
import { judgeGoals } from '../../../bench/report/goals.js';
import { growthBy, parseMetrics } from '../../../bench/session/metrics.js';
import { dressFor, everythingOn } from '../../../bench/session/everything-on.js';
import { parseRules } from '../../../src/admission/rules/rule-set.js';
import { readKeyring, Seals } from '../../../src/admission/sign/seals.js';
import { RequestSignatures, signRules } from '../../../src/admission/sign/request-signatures.js';
import { noAdmissionMetrics } from '../../helpers/no-admission-metrics.js';

const KEYS = { sign: `s1:${'s'.repeat(32)}`, seal: `q1:${'q'.repeat(32)}` };
const PATH = '/v1/sales/7/purchases';

describe('dressed buyers', () => {
  const dir = mkdtempSync(join(tmpdir(), 'seckill-dressed-'));
  after(() => rmSync(dir, { recursive: true, force: true }));

  function bare(count: number): BuyerSlice {
    const path = join(dir, 'bare.bin');
    const record = (index: number): string => buyerRecord('aaa.bbb.ccc', `key-${String(index).padStart(4, '0')}`);
    writeFileSync(path, Array.from({ length: 100 }, (_, index) => record(index)).join(''), 'latin1');
    return { path, recordBytes: record(0).length, first: 40, count };
  }

  it('keep what they had, in their order, and show a signature that is believed once', async () => {
    const dresser = dresserOf({ ...NOTHING_MORE, signed: true }, KEYS, { saleId: '7', path: PATH });
    const dressed = await dressBuyers(bare(3), join(dir, 'signed.bin'), dresser);
    const records = readRecords(dressed);
    const headers = [0, 1, 2].map((place) => headersAt(records, dressed.recordBytes, place));
    expect(headers.map((one) => one['Idempotency-Key'])).to.deep.equal(['key-0040', 'key-0041', 'key-0042']);

    const used = new Set<string>();
    const signatures = new RequestSignatures({
      rules: () => signRules.parse({ mode: 'on', keys: ['s1'] }),
      keys: readKeyring(KEYS.sign),
      nonces: { take: (_keyId, nonce) => Promise.resolve(used.size === used.add(nonce).size ? 'used' : 'fresh') },
      clock: { nowMs: () => Date.now() },
      metrics: noAdmissionMetrics,
    });
    for (const one of [...headers, headers[0] ?? {}].entries()) {
      const head = signatures.begin('7', one[1]);
      if (head === null || typeof head === 'string') throw new Error('the head is not well-formed');
      const refused = await signatures.finish(head, { method: 'POST', path: PATH, body: '{"quantity":1}' });
      expect(refused, `request ${one[0]}`).to.equal(one[0] < 3 ? null : 'bad_signature');
    }
  });

  it('show seals of their own user and sale', () => {
    const dress = { signed: false, purchaseToken: true, queuePass: true };
    const text = dresserOf(dress, KEYS, { saleId: '7', path: PATH })(userIdOf(5));
    const shown = /seckill-purchase-token: (\S+)\r\nseckill-queue-pass: (\S+)\r\n$/.exec(text) ?? [];
    const seals = new Seals(readKeyring(KEYS.seal));
    const opens = (kind: 'purchase-token' | 'queue-pass', userId: string, seal = ''): boolean =>
      seals.open({ kind, saleId: '7', userId }, seal) !== null;
    expect(opens('purchase-token', userIdOf(5), shown[1])).to.equal(true);
    expect(opens('queue-pass', userIdOf(5), shown[2])).to.equal(true);
    expect(opens('queue-pass', userIdOf(6), shown[2])).to.equal(false);
  });

  it('headers of different lengths are an error, not a file that nobody can read', async () => {
    let calls = 0;
    const growing = (): string => `X: ${'x'.repeat(++calls)}\r\n`;
    const error = await dressBuyers(bare(3), join(dir, 'growing.bin'), growing).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(BenchError);
  });

  it('who needs nothing more stays as he is', async () => {
    const slice = bare(2);
    const dressed = await dressBuyers(
      slice,
      join(dir, 'same.bin'),
      dresserOf(NOTHING_MORE, KEYS, { saleId: '7', path: PATH }),
    );
    expect(readFileSync(dressed.path).equals(readRecords(slice))).to.equal(true);
  });
});

describe('every layer on', () => {
  it('what an api knows is published, and buyers show what it asks for', () => {
    const parsed = parseRules(everythingOn(['sign', 'queue', 'breaker', 'degrade'], KEYS));
    if ('reasons' in parsed) throw new Error(JSON.stringify(parsed.reasons));
    const { lists, limits, sign, queue, breaker, degrade } = parsed.rules;
    const modes = [lists, limits, sign, sign.tokens, queue, breaker, degrade].map(({ mode }) => mode);
    expect(modes).to.deep.equal(Array(7).fill('on'));
    expect(Object.keys(everythingOn([], KEYS))).to.deep.equal(['lists', 'limits']);
    expect(everythingOn(['sign', 'queue'], KEYS))
      .to.include.keys('sign', 'queue')
      .and.not.include.keys('breaker');
    expect(dressFor(['sign'])).to.deep.equal({ signed: true, purchaseToken: true, queuePass: false });
    expect(dressFor(['queue', 'degrade'])).to.deep.equal({ signed: false, purchaseToken: false, queuePass: true });
  });
});

describe('growth of a counter by label', () => {
  it('series with the same words are added, and what did not grow is left out', () => {
    const before = parseMetrics(
      'refusals{layer="limits",word="rate_limited",mode="on"} 10\nrefusals{layer="a",word="b"} 3\n',
    );
    const after = parseMetrics(
      'refusals{layer="limits",word="rate_limited",mode="on"} 25\nrefusals{layer="limits",word="rate_limited",mode="dry_run"} 1\n' +
        'refusals{layer="a",word="b"} 3\nrefusals{layer="lists",word="forbidden",mode="on"} 7\nrefusals_more{layer="x"} 9\n',
    );
    expect(growthBy(before, after, 'refusals', ['layer', 'word'])).to.deep.equal({
      'limits rate_limited': 16,
      'lists forbidden': 7,
    });
  });
});

describe('two builds in turn', () => {
  const slice = (apiMicros: number) => ({ apiMicros, accepted: 40_000, yardstickMicros: 2 });
  const pair = (here: number, there: number): Pair => ({ here: slice(here), there: slice(there) });

  it('each is as often the first of its pair', () => {
    expect(turnsOf(3)).to.deep.equal([
      ['here', 'there'],
      ['there', 'here'],
      ['here', 'there'],
    ]);
  });

  it('a machine that gets twice as slow meanwhile changes no ratio', () => {
    const { ratio } = compare('1a2b3c4', [pair(50.5, 50), pair(75, 75), pair(101, 100)]);
    expect(ratio).to.deep.equal({ min: 1, median: 1.01, max: 1.01 });
  });

  it('the goal is judged by the median', () => {
    const goal = (...pairs: Pair[]) =>
      judgeGoals([{ kind: 'paired', scenario: 'paired', comparison: compare('old', pairs) }]);
    expect(goal(pair(101, 100), pair(101, 100), pair(150, 100))[0]).to.include({ measured: 1.01, met: true });
    expect(goal(pair(103, 100))[0]).to.include({ met: false });
  });

  it('the table has a line a pair', () => {
    const lines = pairedTable(compare('1a2b3c4', [pair(51, 50)])).split('\n');
    expect(lines[0]).to.match(/^api CPU µs each +here +accepted +1a2b3c4 +accepted +ratio$/);
    expect(lines[2]).to.match(/^pair 1 +51\.00 +40,000 +50\.00 +40,000 +1\.0200$/);
  });
});

describe('costs of layers', () => {
  it('nanoseconds are shown, and what does not exist is empty', () => {
    const cost = { name: 'lists', offUs: 0.0042, inUs: 0.31, refusedUs: null, redisUs: null };
    expect(layersTable([cost]).split('\n')[2]).to.match(/^lists +0\.004 +0\.310 *$/);
  });
});
