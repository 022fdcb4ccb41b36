import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import sinon from 'sinon';
import { Buyer, type BuyersWorld } from '../../../deploy/local/demo/buyer.js';
import { booksLine } from '../../../deploy/local/demo/demo.js';
import {
  Arrivals,
  FAULT_TIMES,
  FAULTS_ENV,
  habitOf,
  HABITS,
  nextSale,
  SALE_KINDS,
  TRAFFIC_ENV,
  type SaleKind,
} from '../../../deploy/local/demo/plan.js';
import type { DemoSale, DemoSales } from '../../../deploy/local/demo/sales.js';
import { countsLine, Tally } from '../../../deploy/local/demo/tally.js';
import { Traffic } from '../../../deploy/local/demo/traffic.js';
import { SCHEMA } from '../../../src/core/config/schema.js';
import { until } from '../../chaos/harness/wait.js';

const KINDS: readonly [string, SaleKind][] = Object.entries(SALE_KINDS);
const MINUTE_MS = 60_000;

/** Buyers who come from one time to another, both since the opening. */
function buyersBetween({ buyersPerSecond }: SaleKind, fromMs: number, toMs: number): number {
  const arrivals = new Arrivals();
  let come = 0;
  for (let ms = fromMs; ms < toMs; ms += 200) come += arrivals.after(200, buyersPerSecond(ms));
  return come;
}

describe('the plan of the simulated buyers', () => {
  it('has a sale that sells out in a rush, one that never does, and one whose units come back', () => {
    const { hot, steady, scarce } = SALE_KINDS;
    expect(buyersBetween(hot, 0, 3_000)).to.be.greaterThan(1.5 * hot.stock);
    expect(buyersBetween(steady, 0, steady.openForMs)).to.be.lessThan(steady.stock);
    expect(buyersBetween(scarce, 0, MINUTE_MS)).to.be.greaterThan(4 * scarce.stock);
  });

  it('has early buyers for the hot sale alone, and a waiting room that is never quite empty', () => {
    for (const [name, kind] of KINDS) {
      expect(buyersBetween(kind, -kind.announcedMs, 0) > 0, name).to.equal(name === 'hot');
    }
    const perMinute = buyersBetween(SALE_KINDS.queued, 0, 3 * MINUTE_MS) / 3;
    expect(perMinute).to.be.within(20, 60); // one a second is let in
  });

  it('brings waves of buyers to the steady sale, and never a negative number', () => {
    const tens = Array.from({ length: 6 }, (_, nth) =>
      buyersBetween(SALE_KINDS.steady, nth * 10_000, (nth + 1) * 10_000),
    );
    expect(Math.max(...tens)).to.be.greaterThan(3 * Math.min(...tens));
    for (const [name, kind] of KINDS) {
      for (let ms = -kind.announcedMs; ms < kind.openForMs; ms += 100) {
        expect(kind.buyersPerSecond(ms), `${name} at ${ms}`).to.be.within(0, 150);
      }
    }
  });

  it('brings few enough buyers to leave most of a small machine free: a dozen a second, over an hour', () => {
    const perSecond = KINDS.map(([, kind]) => {
      const roundMs = kind.openForMs + Math.max(kind.pauseMs, kind.announcedMs);
      return (buyersBetween(kind, -kind.announcedMs, kind.openForMs) / roundMs) * 1000;
    });
    expect(perSecond.reduce((sum, one) => sum + one, 0)).to.be.within(6, 14);
  });

  it('shows everything within a minute: each sale opens, and each fault comes', () => {
    for (const [name, kind] of KINDS) expect(nextSale(kind, 0, null).opensAtMs, name).to.be.at.most(15_000);
    for (const [fault, { firstMs }] of Object.entries(FAULT_TIMES)) expect(firstMs, fault).to.be.lessThan(MINUTE_MS);
    expect(FAULT_TIMES.killed_worker.everyMs).to.equal(MINUTE_MS);
  });

  it('announces the next sale when the last one is over, and opens it after a pause', () => {
    const kind = { ...SALE_KINDS.hot, announcedMs: 15_000, pauseMs: 20_000 };
    expect(nextSale(kind, 100_000, 100_000)).to.deep.equal({ announcedAtMs: 105_000, opensAtMs: 120_000 });
    expect(nextSale(kind, 105_000, 100_000)).to.deep.equal({ announcedAtMs: 105_000, opensAtMs: 120_000 });
    // after the machine slept
    expect(nextSale(kind, 900_000, 100_000)).to.deep.equal({ announcedAtMs: 900_000, opensAtMs: 915_000 });
  });

  it('deals each habit as often as its share says, and every habit to the first thirty buyers', () => {
    const habits = Array.from({ length: 100 }, (_, nth) => habitOf(nth));
    const counts: Record<string, number> = {};
    for (const habit of habits) counts[habit] = (counts[habit] ?? 0) + 1;
    expect(counts).to.deep.equal({ ...HABITS });
    expect(habits.slice(0, 30)).to.include.members(Object.keys(HABITS));
  });

  it('lets nobody come at once who could not come while the machine stood still', () => {
    const arrivals = new Arrivals();
    expect(arrivals.after(100, 5)).to.equal(0);
    expect(arrivals.after(100, 5)).to.equal(1);
    expect(arrivals.after(60_000, 5)).to.equal(5);
  });

  it('chooses only settings that the programs have', () => {
    const known = Object.values(SCHEMA).flatMap((section) => Object.values(section).map(({ env }) => env));
    for (const name of Object.keys({ ...TRAFFIC_ENV, ...FAULTS_ENV })) expect(known).to.include(name);
  });
});

describe('what the simulated buyers saw', () => {
  it('is counted in all, and since it was last shown', () => {
    const tally = new Tally();
    for (const word of ['tries', 'tries', 'accepted']) tally.add(word);
    expect(tally.lap()).to.deep.equal({ tries: 2, accepted: 1 });
    tally.add('tries');
    expect(tally.lap()).to.deep.equal({ tries: 1 });
    expect(tally.all()).to.deep.equal({ tries: 3, accepted: 1 });
  });

  it('is one line: what was bought, then refusals, most first, then what became of the orders', () => {
    const counts = { tries: 9, limit_reached: 1, sold_out: 3, paid: 2, accepted: 4, ordered: 4, payment_declined: 1 };
    expect(countsLine(counts)).to.equal(
      '9 tries to buy: 4 accepted, 4 ordered; refused: 3 sold out, 1 limit reached; then: 2 paid, 1 payment declined',
    );
    expect(countsLine({})).to.equal('0 tries to buy');
  });
});

describe('an accepted purchase that is no order yet', () => {
  const QUESTION_TAKES_MS = 25_000;
  let clock: sinon.SinonFakeTimers;
  let api: Server;
  let world: BuyersWorld;
  let status: string;

  beforeEach(async () => {
    clock = sinon.useFakeTimers({ toFake: ['performance'] });
    api = createServer((_request, response) => {
      clock.tick(QUESTION_TAKES_MS);
      response.end(JSON.stringify({ status, orderId: '7' }));
    });
    await new Promise<void>((listening) => api.listen(0, '127.0.0.1', listening));
    const { port } = api.address() as AddressInfo;
    world = {
      url: () => `http://127.0.0.1:${port}`,
      token: () => 'token',
      webhookSecret: '',
      paymentWindowMs: null,
      tally: new Tally(),
      random: () => 0,
      unanswered: { count: 0 },
      late: new Set(),
      stopping: new AbortController().signal,
    };
  });
  afterEach(() => {
    clock.restore();
    api.closeAllConnections();
    api.close();
  });

  const late = async (): Promise<Buyer> => {
    status = 'pending';
    const buyer = new Buyer({ saleId: '1', limitPerBuyer: 1, hasQueue: false }, world);
    expect(await buyer.getsOrder()).to.equal(false);
    expect([...world.late]).to.deep.equal([buyer]);
    return buyer;
  };

  it('is late, and missing only if it is none when nobody buys any more', async () => {
    expect(await (await late()).isMissing()).to.equal(true);
    expect(world.tally.all()).to.deep.equal({ late: 1, missing: 1 });
  });

  it('is not missing when it is found in the end', async () => {
    const buyer = await late();
    status = 'ordered';
    expect(await buyer.isMissing()).to.equal(false);
    expect(world.tally.all()).to.deep.equal({ late: 1, ordered: 1 });
  });

  it('nobody more comes while a hundred wait for an answer', async () => {
    status = 'pending';
    const stopping = new AbortController();
    world = { ...world, stopping: stopping.signal, unanswered: { count: 100 } };
    let steps = 0;
    const hot: DemoSale = { name: 'hot', saleId: '1', limitPerBuyer: 1, opensAtMs: Date.now(), closesAtMs: Infinity };
    const sales = {
      keepGoing: () => Promise.resolve(),
      get going() {
        clock.tick(200); // so that some are due in each step
        steps++;
        return [hot];
      },
    } as unknown as DemoSales;
    const traffic = new Traffic(world, sales, { report: () => undefined, stopping });
    traffic.start();
    try {
      await until('buyers would have come', () => steps >= 3);
      expect(world.tally.of('tries'), 'a hundred wait').to.equal(0);
      world.unanswered.count = 99;
      await until('they come', () => world.tally.of('tries') > 0);
    } finally {
      await traffic.stop();
    }
  });

  it('counts as unanswered while it is asked for, and no longer', async () => {
    const counts: number[] = [];
    api.prependListener('request', () => counts.push(world.unanswered.count));
    await new Buyer({ saleId: '1', limitPerBuyer: 1, hasQueue: false }, world).tries({});
    api.close();
    api.closeAllConnections();
    await new Buyer({ saleId: '1', limitPerBuyer: 1, hasQueue: false }, world).tries({});
    expect(counts.concat(world.unanswered.count)).to.deep.equal([1, 0]);
    expect(world.tally.of('no_answer')).to.equal(1);
  });
});

describe('the books after traffic', () => {
  const books = { outcome: 'match', salesCompared: 7, salesFailed: 0, counts: {}, undecided: 0 };

  it('are right only if everything was compared, nothing differs and no purchase is missing', () => {
    expect(booksLine(books, 0)).to.match(/^Books: 7 sales compared\. Redis and MySQL match/);
    const wrong = [
      booksLine({ ...books, outcome: 'findings', counts: { leak: 2 } }, 0),
      booksLine({ ...books, salesFailed: 1 }, 0),
      booksLine({ ...books, undecided: 3 }, 0),
      booksLine(books, 4),
    ];
    const named = [/2 leak/, /1 sales could not/, /3 not decided/, /4 accepted purchases have no order/];
    wrong.forEach((line, nth) => {
      expect(line).not.to.contain('Redis and MySQL match');
      expect(line).to.match(named[nth] as RegExp);
    });
  });
});
