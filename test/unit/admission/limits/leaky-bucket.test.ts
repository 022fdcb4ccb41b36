import { expect } from 'chai';
import fc from 'fast-check';
import { LeakyBucket, type LeakyLimit } from '../../../../src/admission/limits/leaky-bucket.js';
import { SteppedClock } from '../../../helpers/memory/stepped-clock.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A stepped clock that counts its sleepers. */
class CountingClock extends SteppedClock {
  sleeping = 0;
  mostSleeping = 0;

  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.mostSleeping = Math.max(this.mostSleeping, ++this.sleeping);
    await super.sleep(ms, signal);
    this.sleeping--;
  }
}

/** Rates whose interval is a multiple of 0.5 ms, so that both sides compute exactly. */
const limit = fc.record({
  ratePerSecond: fc.constantFrom(1, 4, 8, 10, 20, 50, 100, 125, 200, 250, 400, 500, 1000, 2000),
  waitMaxMs: fc.integer({ min: 0, max: 60 }),
});
const gapsMs = fc.array(
  fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.integer({ min: 0, max: 15 }) }),
  { maxLength: 60 },
);

/** The simple model: water, measured in ms of outflow. It refuses a request that would overflow. */
class Water {
  #levelMs = 0;
  #atMs = 0;

  /** @returns ms to wait, or null if refused */
  enter({ ratePerSecond, waitMaxMs }: LeakyLimit, nowMs: number): number | null {
    this.#levelMs = Math.max(0, this.#levelMs - (nowMs - this.#atMs));
    this.#atMs = nowMs;
    if (this.#levelMs > waitMaxMs) return null;
    const waitMs = this.#levelMs;
    this.#levelMs += 1000 / ratePerSecond;
    return waitMs;
  }
}

describe('leaky bucket', () => {
  it('refuses requests, and releases the others in order, exactly as a simple model does', async () => {
    await fc.assert(
      fc.asyncProperty(limit, gapsMs, async (of, gaps) => {
        const clock = new CountingClock(0);
        const bucket = new LeakyBucket(clock);
        const water = new Water();
        const due: number[] = [];
        const left: { place: number; atMs: number }[] = [];
        const step = async (): Promise<void> => {
          clock.advance(1);
          await turn();
        };
        for (const gap of gaps) {
          for (let ms = 0; ms < gap; ms++) await step();
          const waitMs = water.enter(of, clock.nowMs());
          const place = due.length;
          const entered = bucket.enter(of);
          if (waitMs === null) {
            expect(entered, 'refused').to.have.property('retryAfterMs').that.is.above(0);
            continue;
          }
          due.push(clock.nowMs() + waitMs);
          if (entered === null) left.push({ place, atMs: clock.nowMs() });
          else if (entered instanceof Promise) void entered.then(() => left.push({ place, atMs: clock.nowMs() }));
          else throw new Error(`refused, but the model waits ${waitMs} ms`);
        }
        for (let ms = 0; ms <= of.waitMaxMs + 1; ms++) await step();
        expect(left.map(({ place }) => place)).to.deep.equal(due.map((_, place) => place));
        for (const { place, atMs } of left) {
          expect(atMs - (due[place] as number), 'leaves on time, as finely as a timer can').to.be.within(-1, 1.001);
        }
        expect(clock.mostSleeping, 'timers at a time').to.be.at.most(1);
        expect(bucket.waiting).to.equal(0);
      }),
      { numRuns: 80 },
    );
  });

  it('says when it will have room again', async () => {
    const clock = new SteppedClock(0);
    const bucket = new LeakyBucket(clock);
    const of = { ratePerSecond: 10, waitMaxMs: 200 };
    for (let i = 0; i < 3; i++) void bucket.enter(of);
    expect(bucket.enter(of)).to.deep.equal({ retryAfterMs: 100 });
    clock.advance(99);
    expect(bucket.enter(of)).to.have.property('retryAfterMs');
    clock.advance(1);
    expect(bucket.enter(of)).to.be.instanceOf(Promise);
  });

  it('does not grow although its queue is never empty', async () => {
    const clock = new SteppedClock(0);
    const bucket = new LeakyBucket(clock);
    const of = { ratePerSecond: 1000, waitMaxMs: 10 };
    let left = 0;
    for (let ms = 0; ms < 1500; ms++) {
      for (let i = 0; i < 2; i++) void Promise.resolve(bucket.enter(of)).then((word) => (left += word ? 0 : 1));
      expect(bucket.waiting).to.be.at.most(11);
      clock.advance(1);
      await turn();
    }
    expect(left).to.be.within(1490, 1512);
  });
});
