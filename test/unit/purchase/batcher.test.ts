import { expect } from 'chai';
import fc from 'fast-check';
import { OperationalError } from '../../../src/core/errors.js';
import type { PurchaseOutcome } from '../../../src/core/outcome.js';
import { type Purchase, purchaseKey } from '../../../src/core/purchase.js';
import { Batcher, type BatcherOptions } from '../../../src/purchase/batcher.js';
import type { BatchVerdict } from '../../../src/purchase/metrics.js';
import { AGAIN, type Deliver } from '../../../src/purchase/place-batch.js';
import type { HomeBucket } from '../../../src/core/bucket.js';
import type { Span } from '../../../src/core/ports/tracing.js';
import { MemoryTracing } from '../../helpers/memory/memory-tracing.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';
import { purchaseOf } from '../../helpers/sales.js';
import { partial } from '../../helpers/partial.js';

/** A batch under way. The test ends it. */
interface Placing {
  readonly ref: HomeBucket;
  readonly purchases: readonly Purchase[];
  readonly spans: readonly Span[] | null;
  readonly deliver: Deliver;
  readonly end: (verdict: BatchVerdict) => void;
  readonly fail: (error: unknown) => void;
}

/** A quarter of a full batch counts as large. Here this is a batch of one, which leaves at once. */
const OPTIONS: BatcherOptions = {
  sizeMax: 4,
  inFlightMax: 2,
  gatherMs: 25,
  queueMax: 100,
  waitMaxMs: 2000,
  roundsMax: 3,
};
const SALE = { saleId: '7', bucket: 0, buckets: 1 };
const OTHER = { saleId: '8', bucket: 0, buckets: 1 };

/** Runs everything that is due in this turn of the event loop. */
const turn = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe('batcher', () => {
  let clock: SteppedClock;
  let placing: Placing[];
  let batcher: Batcher;
  let errors: unknown[];
  let placedMetrics: [string, number, number][];
  let queueMetrics: number[];
  let answers: Map<string, string[]>;

  const create = (options: Partial<BatcherOptions> = {}): void => {
    clock = new SteppedClock();
    const own: Placing[] = []; // the timer of an earlier batcher may still form a batch
    placing = own;
    errors = [];
    placedMetrics = [];
    queueMetrics = [];
    answers = new Map();
    batcher = new Batcher(
      { ...OPTIONS, ...options },
      {
        place: (ref, purchases, spans, deliver) =>
          new Promise((end, fail) => own.push({ ref, purchases, spans, deliver, end, fail })),
        clock,
        metrics: partial({
          batchPlaced: (...args) => placedMetrics.push(args),
          queueWaited: (waitedMs) => queueMetrics.push(waitedMs),
        }),
        onError: (error) => {
          errors.push(error);
          return error instanceof OperationalError ? 'unavailable' : 'outcome_unknown';
        },
      },
    );
  };
  beforeEach(() => create());

  /** Submits purchases and records their answers under their text. */
  const submit = (texts: readonly string[], ref: HomeBucket = SALE, span: Span | null = null): void => {
    for (const text of texts) {
      void batcher.submit(ref, purchaseOf(text), span).then(({ outcome }) => {
        answers.set(text, [...(answers.get(text) ?? []), outcome]);
      });
    }
  };
  const crowd = (count: number, prefix = 'u'): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
  const usersOf = (index: number): string[] => (placing[index]?.purchases ?? []).map(({ userId }) => userId);
  const sizes = (): number[] => placing.map(({ purchases }) => purchases.length);
  /** Ends a batch. Every purchase is accepted, except the indexes to be placed again. */
  const accept = async (index: number, again: readonly number[] = []): Promise<void> => {
    const { purchases, deliver, end } = placing[index] as Placing;
    purchases.forEach((_, place) => deliver(place, again.includes(place) ? AGAIN : { outcome: 'accepted' }));
    end(again.length > 0 ? 'refused' : 'accepted');
    await turn();
  };

  describe('group commit', () => {
    it('gives a lone buyer a batch of one at once', async () => {
      submit(['u1']);
      await turn();
      expect(sizes()).to.deep.equal([1]);
      expect(batcher.waiting).to.equal(0);
      await accept(0);
      expect(answers.get('u1')).to.deep.equal(['accepted']);
    });

    it('adds purchases that arrive during a batch to the next batch, in order', async () => {
      submit(crowd(8));
      await turn();
      submit(['late1', 'late2']);
      await turn();
      submit(['late3']);
      await turn();
      expect(placing).to.have.length(2);
      await accept(1);
      expect(usersOf(2)).to.deep.equal(['late1', 'late2', 'late3']);
      expect(batcher.inFlight).to.equal(2);
    });

    it('fills a free slot at once, even with a lone buyer [G9]', async () => {
      submit(crowd(8));
      await turn();
      submit(['lone']);
      placing[0]?.fail(new OperationalError('redis', 'timed out', { retryable: true }));
      await turn();
      expect(usersOf(2)).to.deep.equal(['lone']);
    });

    it('gives each bucket its own slots and batches', async () => {
      submit(crowd(9));
      submit(['x1', 'x2'], OTHER);
      await turn();
      expect(placing.map(({ ref, purchases }) => [ref.saleId, purchases.length])).to.deep.equal([
        ['7', 4],
        ['7', 4],
        ['8', 2],
      ]);
    });

    it('passes the recorded spans of its purchases to a batch, even when placed again', async () => {
      const spanOf = (): Span | null => new MemoryTracing().startRequest(null, { name: 'buy', kind: 'server' });
      const [first, second] = [spanOf(), spanOf()];
      submit(['u1'], SALE, first);
      submit(['u2']);
      submit(['u3'], SALE, second);
      await turn();
      expect(placing[0]?.spans).to.deep.equal([first, second]);
      await accept(0, [1, 2]);
      expect(placing[1]?.spans).to.deep.equal([second]);
      await accept(1, [0]);
      expect(placing[2]?.spans, 'no purchase is recorded').to.equal(null);
    });

    it('measures the wait of the oldest purchase and the outcome of each batch', async () => {
      submit(crowd(9));
      await turn();
      clock.advance(30);
      await accept(0);
      clock.advance(10);
      placing[1]?.fail(new OperationalError('redis', 'gone', { retryable: true }));
      await turn();
      expect(queueMetrics).to.deep.equal([0, 0, 30]);
      expect(placedMetrics).to.deep.equal([
        ['accepted', 4, 30],
        ['unavailable', 4, 40],
      ]);
    });
  });

  describe('small batches', () => {
    beforeEach(async () => {
      create({ sizeMax: 40, inFlightMax: 3 });
      submit(['first']);
      await turn();
    });

    it('leave at a minimum interval, so that the next batch fills up', async () => {
      submit(['u1', 'u2']);
      clock.advance(10);
      submit(['u3']);
      clock.advance(14);
      await turn();
      expect(sizes()).to.deep.equal([1]);
      clock.advance(1);
      await turn();
      expect(sizes(), '25 ms after the first').to.deep.equal([1, 3]);
      await accept(0);
      await accept(1);
      submit(['u4']);
      clock.advance(24);
      await turn();
      expect(sizes(), 'also when nothing is under way').to.deep.equal([1, 3]);
      clock.advance(1);
      await turn();
      expect(sizes()).to.deep.equal([1, 3, 1]);
    });

    it('do not delay a full batch', async () => {
      submit(crowd(9));
      await turn();
      expect(sizes()).to.deep.equal([1]);
      submit(['tenth']);
      await turn();
      expect(sizes()).to.deep.equal([1, 10]);
    });

    it('leave with the first free slot if every slot was taken', async () => {
      submit(crowd(20));
      await turn();
      submit(crowd(10, 'v'));
      await turn();
      submit(['lone']);
      clock.advance(25);
      await turn();
      expect(sizes()).to.deep.equal([1, 20, 10]);
      await accept(1);
      expect(sizes()).to.deep.equal([1, 20, 10, 1]);
    });

    it('keep an idle lane until their interval is over', async () => {
      await accept(0);
      expect(batcher.lanes).to.equal(1);
      clock.advance(25);
      await turn();
      expect(batcher.lanes).to.equal(0);
    });

    it('answer a purchase that waits too long for a slot, even while they fill up', async () => {
      create({ sizeMax: 40, inFlightMax: 1, gatherMs: 5000 });
      submit(['first']);
      await turn();
      submit(['u1']);
      clock.advance(2001);
      await turn();
      expect(answers.get('u1')).to.deep.equal(['overloaded']);
    });

    it('leave without an interval if gatherMs is 0', async () => {
      create({ sizeMax: 40, inFlightMax: 3, gatherMs: 0 });
      for (const text of ['u1', 'u2', 'u3', 'u4']) {
        submit([text]);
        await turn();
      }
      expect(sizes()).to.deep.equal([1, 1, 1]);
    });
  });

  describe('bounds', () => {
    it('answers `overloaded` at once beyond the queue limit of all sales together [G8]', async () => {
      create({ queueMax: 3 });
      submit(crowd(8));
      await turn();
      expect([...answers].map(([text, [word]]) => [text, word])).to.deep.equal([
        ...['u3', 'u4', 'u5', 'u6', 'u7'].map((text) => [text, 'overloaded']),
      ]);
      create({ queueMax: 3, inFlightMax: 1, sizeMax: 1 });
      submit(crowd(2));
      await turn();
      submit(['x1', 'x2', 'x3'], OTHER); // one purchase of sale 7 already waits
      await turn();
      expect([...answers.keys()]).to.deep.equal(['x3']);
    });

    it('answers purchases that wait too long by a timer if every slot hangs [G9]', async () => {
      submit(crowd(8));
      await turn();
      submit(['old1', 'old2']);
      clock.advance(1000);
      submit(['young']);
      clock.advance(1000);
      await turn();
      expect(answers.size, 'exactly as long as allowed').to.equal(0);
      clock.advance(1);
      await turn();
      expect([...answers]).to.deep.equal([
        ['old1', ['overloaded']],
        ['old2', ['overloaded']],
      ]);
      expect(batcher.waiting).to.equal(1);
      clock.advance(1000);
      await turn();
      expect(answers.get('young')).to.deep.equal(['overloaded']);
      expect(answers.get('u7'), 'in a batch, however long').to.equal(undefined);
      submit(['later']);
      clock.advance(2001);
      await turn();
      expect(answers.get('later'), 'the watch begins again').to.deep.equal(['overloaded']);
      expect([batcher.waiting, placing.length]).to.deep.equal([0, 2]);
    });
  });

  describe('purchases placed again', () => {
    it('go first into the next batch, before newer purchases [G1]', async () => {
      create({ inFlightMax: 1 });
      submit(crowd(4));
      await turn();
      submit(crowd(5, 'late'));
      await accept(0, [1, 3]);
      expect(usersOf(1)).to.deep.equal(['u1', 'u3', 'late0', 'late1']);
      expect(batcher.waiting).to.equal(3);
      expect([answers.get('u0'), answers.get('u1')]).to.deep.equal([['accepted'], undefined]);
    });

    it('are placed a limited number of times, and are then answered `overloaded` [G1]', async () => {
      submit(['u1']);
      for (let round = 0; round < OPTIONS.roundsMax; round++) {
        await turn();
        expect(sizes()).to.deep.equal(Array(round + 1).fill(1));
        await accept(round, [0]);
      }
      expect(answers.get('u1')).to.deep.equal(['overloaded']);
      expect([placing.length, batcher.waiting, batcher.lanes]).to.deep.equal([OPTIONS.roundsMax, 0, 0]);
    });

    it('are answered `unavailable` after several refusals by the store in a row [G14]', async () => {
      create({ sizeMax: 1, inFlightMax: 100 });
      const refuse = async (users: readonly string[]): Promise<(string | undefined)[]> => {
        const first = placing.length;
        submit(users);
        await turn();
        for (const { deliver, end } of placing.slice(first)) {
          deliver(0, { outcome: 'refused_by_store' });
          end('refused_by_store');
        }
        await turn();
        return users.map((user) => answers.get(user)?.[0]);
      };
      submit(['slow']); // keeps the lane
      await turn();
      const refused = Array<string>(16).fill('refused_by_store');
      expect(await refuse(crowd(18))).to.deep.equal([...refused, 'unavailable', 'unavailable']);
      await accept(0);
      expect(await refuse(['later']), 'it accepts others: the purchase is at fault').to.deep.equal([
        'refused_by_store',
      ]);
    });

    it('keep their waiting time from the first attempt', async () => {
      submit(['u1']);
      await turn();
      clock.advance(2001);
      await accept(0, [0]);
      expect(answers.get('u1')).to.deep.equal(['overloaded']);
      expect(placing).to.have.length(1);
    });
  });

  describe('equal requests', () => {
    it('share one purchase and one answer while the key waits or is under way [G5, S1]', async () => {
      submit(['u1/k', 'u1/k', 'u2']);
      await turn();
      submit(['u1/k']);
      await turn();
      expect(placing.map(({ purchases }) => purchases)).to.deep.equal([[purchaseOf('u1/k'), purchaseOf('u2')]]);
      await accept(0);
      expect(answers.get('u1/k')).to.deep.equal(['accepted', 'accepted', 'accepted']);
    });

    it('get `request_conflict` at once for another quantity, and the first request continues [S2]', async () => {
      submit(['u1/k*2', 'u1/k*1']);
      await turn();
      expect(answers.get('u1/k*1')).to.deep.equal(['request_conflict']);
      await accept(0);
      expect(answers.get('u1/k*2')).to.deep.equal(['accepted']);
    });

    it('share the answer of the first request if the queue is full', async () => {
      create({ queueMax: 1 });
      submit(['u1', 'u1', 'u2']);
      await turn();
      expect(answers.get('u2')).to.deep.equal(['overloaded']);
      await accept(0);
      expect(answers.get('u1')).to.deep.equal(['accepted', 'accepted']);
    });

    it('share one new look-up if they arrive during the batch [S1]', async () => {
      for (const word of ['sold_out', 'limit_reached', 'not_open', 'closed', 'paused'] as const) {
        create();
        submit(['u1/k', 'u2']);
        await turn();
        submit(['u1/k', 'u1/k']);
        placing[0]?.deliver(0, { outcome: word });
        await turn();
        expect(answers.get('u1/k'), 'the earlier request').to.deep.equal([word]);
        await accept(1);
        expect(answers.get('u1/k')).to.deep.equal([word, 'accepted', 'accepted']);
        expect(placing.map(({ purchases }) => purchases.map(purchaseKey))).to.deep.equal([['u1/k', 'u2/k1'], ['u1/k']]);
      }
    });

    it('share an answer that is final or asks for a retry', async () => {
      for (const word of ['accepted', 'request_conflict', 'outcome_unknown', 'overloaded', 'loading'] as const) {
        create();
        submit(['u1/k']);
        await turn();
        submit(['u1/k']);
        placing[0]?.deliver(0, { outcome: word });
        await turn();
        expect(answers.get('u1/k')).to.deep.equal([word, word]);
        expect(placing).to.have.length(1);
      }
    });

    it('share the answer of a purchase that is placed again [G1]', async () => {
      submit(['u1/k', 'u2']);
      await turn();
      submit(['u1/k']);
      await accept(0, [0]);
      placing[1]?.deliver(0, { outcome: 'sold_out' });
      await turn();
      expect(answers.get('u1/k')).to.deep.equal(['sold_out', 'sold_out']);
    });

    it('are different purchases if the sale or the buyer differs [S3]', async () => {
      submit(['u1/k', 'u2/k']);
      submit(['u1/k'], OTHER);
      await turn();
      expect(sizes()).to.deep.equal([2, 1]);
    });

    it('start a new purchase after the answer, because Redis has the result', async () => {
      submit(['u1']);
      await turn();
      await accept(0);
      submit(['u1']);
      await turn();
      expect(placing).to.have.length(2);
    });
  });

  describe('a failing batch', () => {
    it('answers `unavailable` to every unanswered purchase while a dependency is down [M1]', async () => {
      submit(['u1', 'u2', 'u3']);
      await turn();
      placing[0]?.deliver(1, { outcome: 'sold_out' });
      placing[0]?.fail(new OperationalError('redis', 'gone', { retryable: true }));
      await turn();
      expect(answers).to.deep.equal(
        new Map([
          ['u2', ['sold_out']],
          ['u1', ['unavailable']],
          ['u3', ['unavailable']],
        ]),
      );
      expect(errors).to.have.length(1);
    });

    it('reports a bug and answers `outcome_unknown`', async () => {
      submit(['u1']);
      await turn();
      placing[0]?.fail(new TypeError('a bug'));
      await turn();
      expect(answers.get('u1')).to.deep.equal(['outcome_unknown']);
      expect(errors[0]).to.be.instanceOf(TypeError);
    });

    it('keeps the first answer of a purchase', async () => {
      submit(['u1']);
      await turn();
      placing[0]?.deliver(0, { outcome: 'accepted' });
      placing[0]?.deliver(0, { outcome: 'sold_out' });
      await accept(0);
      expect(answers.get('u1')).to.deep.equal(['accepted']);
    });

    it('leaves the next purchase with the same key untouched if it fails after its answers', async () => {
      submit(['u1']);
      await turn();
      placing[0]?.deliver(0, { outcome: 'sold_out' });
      submit(['u1']);
      await turn();
      placing[0]?.fail(new OperationalError('rocketmq', 'gone', { retryable: true }));
      await turn();
      submit(['u1']);
      await turn();
      expect(placing, 'the third is a duplicate of the second').to.have.length(2);
      await accept(1);
      expect(answers.get('u1')).to.deep.equal(['sold_out', 'accepted', 'accepted']);
    });

    it('answers at once, before the batch has ended', async () => {
      submit(['u1']);
      await turn();
      placing[0]?.deliver(0, { outcome: 'accepted' });
      await turn();
      expect(answers.get('u1')).to.deep.equal(['accepted']);
      expect(batcher.inFlight).to.equal(1);
    });
  });

  describe('memory', () => {
    it('keeps the slot of an answered batch until its commit ends', async () => {
      submit(crowd(8));
      await turn();
      for (const { purchases, deliver } of placing) purchases.forEach((_, i) => deliver(i, { outcome: 'accepted' }));
      placing[0]?.end('accepted');
      await turn();
      submit(crowd(8, 'next'));
      await turn();
      expect(sizes(), 'one slot is free, not two').to.deep.equal([4, 4, 4]);
      expect([batcher.inFlight, batcher.waiting]).to.deep.equal([2, 4]);
    });

    it('keeps an emptied lane for equal requests while a batch is under way', async () => {
      submit(crowd(8));
      await turn();
      for (const { purchases, deliver } of placing) purchases.forEach((_, i) => deliver(i, { outcome: 'accepted' }));
      placing[0]?.end('accepted');
      await turn();
      submit(['next']);
      await turn();
      placing[1]?.end('accepted');
      await turn();
      submit(['next']);
      await turn();
      expect(placing.filter(({ purchases }) => purchases.some(({ userId }) => userId === 'next'))).to.have.length(1);
    });
  });

  it('answers every request of random crowds once and within every limit', async () => {
    type Action = { submit: number[] } | { end: number; again: boolean[] } | { fail: number } | { wait: number };
    const action = fc.oneof<{ weight: number; arbitrary: fc.Arbitrary<Action> }[]>(
      { weight: 4, arbitrary: fc.record({ submit: fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 9 }) }) },
      { weight: 3, arbitrary: fc.record({ end: fc.nat(), again: fc.array(fc.boolean(), { maxLength: 4 }) }) },
      { weight: 1, arbitrary: fc.record({ fail: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ wait: fc.integer({ min: 1, max: 1500 }) }) },
    );
    const story = async (actions: readonly Action[], options: Partial<BatcherOptions>): Promise<void> => {
      create(options);
      const { inFlightMax, sizeMax, queueMax } = { ...OPTIONS, ...options };
      const underWay = new Set<Placing>();
      let known = 0;
      let asked = 0;
      let answered = 0;
      const check = async (): Promise<void> => {
        await turn();
        for (; known < placing.length; known++) underWay.add(placing[known] as Placing);
        for (const saleId of ['7', '8']) {
          const own = [...underWay].filter(({ ref }) => ref.saleId === saleId);
          const keys = own.flatMap(({ purchases }) => purchases.map(purchaseKey));
          expect(new Set(keys).size, 'no key under way twice').to.equal(keys.length);
          expect(own.length).to.be.at.most(inFlightMax);
        }
        for (const { purchases } of underWay) expect(purchases.length).to.be.within(1, sizeMax);
        expect(batcher.inFlight).to.equal(underWay.size);
        // Purchases placed again may exceed the limit, because they passed it before.
        expect(batcher.waiting).to.be.at.most(queueMax + sizeMax * inFlightMax * 2);
      };
      const answer = (outcome: PurchaseOutcome): void => {
        expect(outcome.outcome).to.be.a('string');
        answered++;
      };
      const endOne = async (batch: Placing, again: readonly boolean[]): Promise<void> => {
        underWay.delete(batch);
        batch.purchases.forEach((_, index) => batch.deliver(index, again[index] ? AGAIN : { outcome: 'accepted' }));
        batch.end('refused');
        await check();
      };
      for (const step of actions) {
        const pick = (number: number): Placing | undefined => [...underWay][number % Math.max(1, underWay.size)];
        if ('submit' in step) {
          for (const number of step.submit) {
            asked++;
            const ref = number % 3 === 0 ? OTHER : SALE;
            void batcher.submit(ref, purchaseOf(`u${number}*${1 + (asked % 11 === 0 ? 1 : 0)}`)).then(answer);
          }
        } else if ('end' in step) {
          const batch = pick(step.end);
          if (batch) await endOne(batch, step.again);
        } else if ('fail' in step) {
          const batch = pick(step.fail);
          if (batch) {
            underWay.delete(batch);
            batch.fail(new OperationalError('redis', 'gone', { retryable: true }));
          }
        } else clock.advance(step.wait);
        await check();
      }
      for (let round = 0; batcher.lanes > 0 && round < 100; round++) {
        for (const batch of underWay) await endOne(batch, []);
        clock.advance(OPTIONS.gatherMs);
        await check();
      }
      expect(answered, 'every request is answered').to.equal(asked);
      expect([batcher.lanes, batcher.waiting, batcher.inFlight]).to.deep.equal([0, 0, 0]);
    };
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 40, size: 'max' }),
        fc.record({
          sizeMax: fc.integer({ min: 1, max: 16 }),
          gatherMs: fc.constantFrom(0, OPTIONS.gatherMs),
          inFlightMax: fc.integer({ min: 1, max: 3 }),
          queueMax: fc.integer({ min: 1, max: 12 }),
          roundsMax: fc.integer({ min: 1, max: 4 }),
        }),
        story,
      ),
      { numRuns: 150 },
    );
  });
});
