import { expect } from 'chai';
import { Registry } from 'prom-client';
import { createHttpMetrics } from '../../../src/http/metrics.js';
import type { AnswersOfSecond } from '../../../src/core/ports/answer-history.js';
import { rememberAnswers, SaleAnswers } from '../../../src/http/sale-answers.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryAnswerHistory } from '../../helpers/memory/memory-answer-history.js';
import { silentLog } from '../../helpers/silent-log.js';
import { partial } from '../../helpers/partial.js';

const linesOf = async (registry: Registry, name: string): Promise<string[]> =>
  (await registry.metrics()).split('\n').filter((line) => line.startsWith(`${name}`));

describe('HTTP metrics', () => {
  let registry: Registry;
  beforeEach(() => {
    registry = new Registry();
  });

  it('count responses by route and code, however often the page is read', async () => {
    const metrics = createHttpMetrics(registry);
    const soldOut = metrics.answered('purchase', 'sold_out');
    soldOut();
    soldOut();
    metrics.answered('purchase', 'sold_out')();
    const counted = (): Promise<string[]> => linesOf(registry, 'seckill_http_answers_total{');
    expect(await counted()).to.include('seckill_http_answers_total{route="purchase",code="sold_out"} 3');
    soldOut();
    expect(await counted()).to.include('seckill_http_answers_total{route="purchase",code="sold_out"} 4');
  });

  it('show all series of the objectives before the first response', async () => {
    createHttpMetrics(registry);
    const page = await registry.metrics();
    for (const code of ['accepted', 'unavailable', 'outcome_unknown', 'internal'])
      expect(page).to.include(`seckill_http_answers_total{route="purchase",code="${code}"} 0`);
    expect(page).to.include('seckill_http_answer_seconds_count{route="purchase",class="ok"} 0');
  });

  it('give durations as a cumulative Prometheus histogram with inclusive upper bounds', async () => {
    registry.setDefaultLabels({ program: 'api' });
    const metrics = createHttpMetrics(registry);
    const ok = metrics.took('purchase', 'ok');
    for (const tookMs of [0.2, 1, 1.1, 400, 60_000]) ok(tookMs);
    metrics.took('purchase', 'ok')(3);
    metrics.took('order', 'failed')(7);
    const page = await registry.metrics();
    expect(page).to.match(/^# TYPE seckill_http_answer_seconds histogram$/m);
    const all = 'route="purchase",class="ok"';
    const bucket = (le: string): number =>
      Number(
        new RegExp(`^seckill_http_answer_seconds_bucket\\{${all},le="${le}",program="api"\\} (\\d+)$`, 'm').exec(
          page,
        )?.[1],
      );
    expect([bucket('0.001'), bucket('0.0025'), bucket('0.005'), bucket('0.25'), bucket('0.5')]).to.deep.equal([
      2, 3, 4, 4, 5,
    ]);
    expect([bucket('10'), bucket('\\+Inf')]).to.deep.equal([5, 6]);
    expect(page).to.include(`seckill_http_answer_seconds_count{${all},program="api"} 6`);
    expect(page).to.include(`seckill_http_answer_seconds_sum{${all},program="api"} 60.4053`);
    expect(page).to.include('seckill_http_answer_seconds_count{route="order",class="failed",program="api"} 1');
  });
});

describe('responses by sale', () => {
  let registry: Registry;
  let nowMs: number;
  let answers: SaleAnswers;
  beforeEach(() => {
    registry = new Registry();
    nowMs = 0;
    answers = new SaleAnswers(
      registry,
      (saleId) => !saleId.startsWith('made-up'),
      () => nowMs,
    );
  });
  const series = async (): Promise<string[]> =>
    (await linesOf(registry, 'seckill_sale_answers_total{')).map((line) =>
      line.slice('seckill_sale_answers_total'.length),
    );

  it('count codes for each sale, and all unknown sales together', async () => {
    for (const code of ['accepted', 'sold_out', 'sold_out']) answers.count('7', code);
    answers.count('8', 'sold_out');
    for (const saleId of ['made-up-1', 'made-up-2']) answers.count(saleId, 'not_found');
    answers.count('7', 'sold_out');
    expect(await series()).to.have.members([
      '{sale="7",code="accepted"} 1',
      '{sale="7",code="sold_out"} 3',
      '{sale="8",code="sold_out"} 1',
      '{sale="other",code="not_found"} 2',
    ]);
  });

  it('return new counts once, even if Prometheus scrapes too', async () => {
    const taken = (): unknown => {
      const { sales, others } = answers.takeNew();
      expect(others).to.equal(0);
      return Object.fromEntries(sales);
    };
    for (const code of ['accepted', 'sold_out', 'sold_out']) answers.count('7', code);
    answers.count('made-up-1', 'not_found');
    expect(taken()).to.deep.equal({ 7: { accepted: 1, sold_out: 2 } });
    expect(taken()).to.deep.equal({});
    answers.count('7', 'sold_out');
    await series();
    answers.count('7', 'sold_out');
    answers.count('8', 'accepted');
    expect(taken()).to.deep.equal({ 7: { sold_out: 2 }, 8: { accepted: 1 } });
    expect(await series(), 'the series has all answers').to.include('{sale="7",code="sold_out"} 4');
  });

  it('cover twenty sales, and give the place of a quiet sale to a new sale', async () => {
    for (let sale = 1; sale <= 25; sale++) answers.count(String(sale), 'accepted');
    expect(await series()).to.have.length(21);
    expect(await series()).to.include('{sale="other",code="accepted"} 5');
    answers.count('made-up-1', 'not_found');
    const { sales, others } = answers.takeNew();
    expect([sales.size, others], 'five sales have no place').to.deep.equal([20, 5]);
    expect(answers.takeNew()).to.deep.equal({ sales: new Map(), others: 0 });
    answers.count('1', 'accepted');
    nowMs = 5 * 60_000;
    answers.count('1', 'accepted'); // Buyers of this sale are still active.
    nowMs = 10 * 60_000;
    answers.count('30', 'accepted');
    expect(await series()).to.have.members([
      '{sale="1",code="accepted"} 3',
      '{sale="30",code="accepted"} 1',
      '{sale="other",code="accepted"} 5',
      '{sale="other",code="not_found"} 1',
    ]);
  });
});

describe('response history', () => {
  const answersOf = (...taken: readonly AnswersOfSecond[]): { takeNew: () => AnswersOfSecond } => {
    const left = [...taken];
    return { takeNew: () => left.shift() ?? NONE };
  };
  const NONE: AnswersOfSecond = { sales: new Map(), others: 0 };
  const one = (times: number): AnswersOfSecond => ({ sales: new Map([['7', { accepted: times }]]), others: 0 });

  it('stores each second with a buyer once the second is over', async () => {
    const clock = new ManualClock(Date.UTC(2030, 0, 1) + 400);
    const startMs = Date.UTC(2030, 0, 1);
    const stop = new AbortController();
    const added: unknown[] = [];
    const history = {
      add: async (atMs: number, answers: AnswersOfSecond) => {
        added.push([atMs - startMs, clock.nowMs() - startMs, Object.fromEntries(answers.sales), answers.others]);
        if (added.length === 4) stop.abort();
      },
    };
    const answers = answersOf(one(1), NONE, one(2), one(3), { ...NONE, others: 7 });
    await rememberAnswers(partial(answers), { history: partial(history), clock, log: silentLog }, stop.signal);
    expect(added).to.deep.equal([
      [0, 1000, { 7: { accepted: 1 } }, 0],
      [2000, 3000, { 7: { accepted: 2 } }, 0],
      [3000, 4000, { 7: { accepted: 3 } }, 0],
      [4000, 5000, {}, 7],
    ]);
  });

  it('loses only the seconds in which a bug occurs, and logs the bug', async () => {
    const clock = new ManualClock(Date.UTC(2030, 0, 1));
    const stop = new AbortController();
    const logged: unknown[] = [];
    const log = { ...silentLog, error: (fields: object, message: string) => void logged.push([fields, message]) };
    const bug = new TypeError('a bug');
    let adds = 0;
    const history = {
      add: async () => {
        adds++;
        if (adds === 14) stop.abort();
        if (adds < 13) throw bug;
      },
    };
    await rememberAnswers(partial({ takeNew: () => one(1) }), { history: partial(history), clock, log }, stop.signal);
    const line = [{ err: bug }, 'a bug: the answers of a second were not stored'];
    expect(logged, 'twelve in twelve seconds').to.deep.equal([line, line]);
  });

  it('loses only a second that Redis refused, and stores the unfinished second at the end', async () => {
    const clock = new ManualClock(Date.UTC(2030, 0, 1));
    const stop = new AbortController();
    const history = new MemoryAnswerHistory(clock);
    history.down = true;
    let looks = 0;
    const taken = answersOf(one(1), one(2));
    const answers = {
      takeNew: () => {
        if (++looks === 2) history.down = false;
        if (looks === 2) stop.abort();
        return taken.takeNew();
      },
    };
    await rememberAnswers(partial(answers), { history, clock, log: silentLog }, stop.signal);
    const seconds = await history.read('7', Date.UTC(2030, 0, 1), Date.UTC(2030, 0, 1) + 60_000);
    expect([...seconds].map(([atMs, counts]) => [atMs % 60_000, counts])).to.deep.equal([[1000, { accepted: 2 }]]);
  });
});
