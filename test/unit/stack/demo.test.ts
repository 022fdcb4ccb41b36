import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import sinon from 'sinon';
import { Buyer, type BuyersWorld } from '../../../deploy/local/demo/buyer.js';
import { booksLine, faultsLine } from '../../../deploy/local/demo/demo.js';
import { Tally } from '../../../deploy/local/demo/tally.js';

describe('an accepted purchase without an order', () => {
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

  it('is late, and missing if it still has no order after the last purchase', async () => {
    expect(await (await late()).isMissing()).to.equal(true);
    expect(world.tally.all()).to.deep.equal({ late: 1, missing: 1 });
  });

  it('is not missing if its order appears in the end', async () => {
    const buyer = await late();
    status = 'ordered';
    expect(await buyer.isMissing()).to.equal(false);
    expect(world.tally.all()).to.deep.equal({ late: 1, ordered: 1 });
  });
});

describe('the books after traffic', () => {
  const books = {
    outcome: 'match',
    salesCompared: 7,
    salesFailed: 0,
    salesTaken: 0,
    salesGone: 0,
    counts: {},
    undecided: 0,
  };

  it('balance only if everything was compared, nothing differs and no purchase is missing', () => {
    expect(booksLine(books, 0)).to.match(/^Result: 7 sales compared\. Redis and MySQL match/);
    const lost = { ...books, outcome: 'partly', salesGone: 2 };
    expect(booksLine(lost, 0)).to.match(
      /^Result: 7 sales compared\. Redis and MySQL match.* Redis no longer has 2 ended sales/,
    );
    const wrong = [
      booksLine({ ...books, outcome: 'partly', salesTaken: 5 }, 0),
      booksLine({ ...books, outcome: 'none', salesCompared: 0 }, 0),
      booksLine({ ...books, outcome: 'findings', counts: { leak: 2 } }, 0),
      booksLine({ ...books, salesFailed: 1 }, 0),
      booksLine({ ...books, undecided: 3 }, 0),
      booksLine(books, 4),
    ];
    const named = [
      /5 sales were being compared/,
      /no sale could be compared\./,
      /2 leak/,
      /1 sales could not/,
      /3 purchases undecided/,
      /4 accepted purchases have no order/,
    ];
    wrong.forEach((line, nth) => {
      expect(line)
        .not.to.contain('Redis and MySQL match')
        .and.not.match(/[.:] ?\./);
      expect(line).to.match(named[nth] as RegExp);
    });
  });

  it('lists only faults that occurred', () => {
    const none = { poisoned_batch: 0, dead_letters: 0, killed_worker: 0, half_message: 0 };
    expect(faultsLine(none)).to.equal('none');
    expect(faultsLine({ ...none, killed_worker: 2 })).to.equal('2 killed workers');
  });
});
