import { expect } from 'chai';
import fc from 'fast-check';
import { TOKEN, type BucketLimit, WINDOW_SLICES } from '../../../../src/core/limits.js';
import { TokenBucket, SlidingWindow } from '../../../../src/admission/limits/local-limit-store.js';

const limit = fc.record({
  ratePerSecond: fc.integer({ min: 1, max: 100_000 }),
  burst: fc.integer({ min: 1, max: 1000 }),
});
/** Pauses between calls, µs: bursts, trickles and long silences. */
const gapUs = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 50 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 20_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 5_000_000 }) },
);
const BEGIN_US = 1_800_000_000_000_000;

/** Replays calls against a bucket. Returns the times of the admitted calls, µs. */
function admitted(of: BucketLimit, gapsUs: readonly number[]): number[] {
  const bucket = new TokenBucket();
  const times: number[] = [];
  let nowUs = BEGIN_US;
  for (const gap of gapsUs) {
    nowUs += gap;
    if (bucket.tokens(of, nowUs) < TOKEN) continue;
    bucket.take(of, nowUs);
    times.push(nowUs);
  }
  return times;
}

/** The simple model admits a call if every span that ends now then contains at most burst + rate × span calls. */
function admittedByModel({ ratePerSecond, burst }: BucketLimit, gapsUs: readonly number[]): number[] {
  const times: bigint[] = [];
  let nowUs = BigInt(BEGIN_US);
  for (const gap of gapsUs) {
    nowUs += BigInt(gap);
    const fits = times.every((fromUs, index) => {
      const inSpan = BigInt(times.length - index + 1);
      return inSpan * 1_000_000n <= BigInt(burst) * 1_000_000n + BigInt(ratePerSecond) * (nowUs - fromUs);
    });
    if (fits) times.push(nowUs);
  }
  return times.map(Number);
}

describe('token bucket', () => {
  it('admits the same calls as a simple model, for any pattern of calls', () => {
    fc.assert(
      fc.property(limit, fc.array(gapUs, { maxLength: 150 }), (of, gapsUs) => {
        expect(admitted(of, gapsUs)).to.deep.equal(admittedByModel(of, gapsUs));
      }),
      { numRuns: 300 },
    );
  });

  /** Returns calls at irregular times, on average `perToken` calls per token, for the burst and 500 more tokens. */
  const crowdOf = ({ ratePerSecond, burst }: BucketLimit, perToken: number, seed: number): number[] => {
    let state = seed;
    const draw = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const meanUs = 1_000_000 / ratePerSecond / perToken;
    return Array.from({ length: perToken * (burst + 500) }, () => Math.floor(draw() * 2 * meanUs));
  };
  const seed = fc.integer({ min: 1, max: 2 ** 31 - 2 });
  const CROWDS = [
    ['that saves up', { rateMax: 100_000, burstMin: 10, burstMax: 1000, perToken: 3, numRuns: 30 }],
    ['of one token', { rateMax: 500, burstMin: 1, burstMax: 1, perToken: 200, numRuns: 6 }],
  ] as const;
  for (const [name, { rateMax, burstMin, burstMax, perToken, numRuns }] of CROWDS) {
    it(`admits at most burst + rate × time, within 1 %, for a bucket ${name}`, () => {
      const crowded = fc.record({
        ratePerSecond: fc.integer({ min: 1, max: rateMax }),
        burst: fc.integer({ min: burstMin, max: burstMax }),
      });
      const check = (of: BucketLimit, first: number): void => {
        const gapsUs = crowdOf(of, perToken, first);
        const spanUs = gapsUs.reduce((sum, gap) => sum + gap, 0);
        const count = admitted(of, gapsUs).length;
        expect(count).to.be.within(
          Math.floor(0.99 * (of.burst + (of.ratePerSecond * spanUs) / 1_000_000)),
          of.burst + (of.ratePerSecond * spanUs) / 1_000_000,
        );
      };
      fc.assert(fc.property(crowded, seed, check), { numRuns });
    });
  }

  it('neither adds nor takes tokens if the clock is set back', () => {
    const of = { ratePerSecond: 1000, burst: 2 };
    const bucket = new TokenBucket();
    bucket.take(of, BEGIN_US);
    expect(bucket.tokens(of, BEGIN_US - 60_000_000)).to.equal(TOKEN);
    bucket.take(of, BEGIN_US - 60_000_000);
    expect(bucket.tokens(of, BEGIN_US - 60_000_000)).to.equal(0);
  });
});

const MANY = 1_000_000;

interface Call {
  readonly atUs: number;
  readonly subject: string;
}

const windowLimit = fc.integer({ min: 1, max: 8 });
const windowMs = fc.integer({ min: 10, max: 6000 }).map((tens) => tens * 10);
/** Pauses as fractions of the window, so that calls are close together, adjacent or far apart. */
const calls = fc.array(
  fc.record({
    part: fc.oneof(
      { weight: 5, arbitrary: fc.integer({ min: 0, max: 40 }) },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: 400 }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 3000 }) },
    ),
    subject: fc.constantFrom('a', 'a', 'a', 'b', 'c'),
  }),
  { maxLength: 200 },
);

const timed = (list: readonly { part: number; subject: string }[], ofMs: number): Call[] => {
  let atUs = BEGIN_US;
  return list.map(({ part, subject }) => ({ atUs: (atUs += part * ofMs), subject }));
};

const enter = (window: SlidingWindow, { atUs, subject }: Call, most: number, subjectsMax = MANY): boolean | null => {
  const counts = window.find(subject, subjectsMax, atUs);
  if (counts === null) return null;
  if (counts.total >= most) return false;
  window.add(subject, counts);
  return true;
};

describe('sliding window', () => {
  it('admits at most the limit per window, and refuses only if 1.1 windows reach the limit', () => {
    fc.assert(
      fc.property(windowLimit, windowMs, calls, (most, ofMs, list) => {
        const window = new SlidingWindow(ofMs);
        const log = new Map<string, number[]>();
        const windowUs = ofMs * 1000;
        for (const call of timed(list, ofMs)) {
          const own = log.get(call.subject) ?? [];
          const since = (spanUs: number): number => own.filter((us) => us > call.atUs - spanUs).length;
          if (enter(window, call, most)) {
            own.push(call.atUs);
            log.set(call.subject, own);
            expect(since(windowUs), 'admitted during the last window').to.be.at.most(most);
          } else {
            expect(since(windowUs + windowUs / WINDOW_SLICES), 'admitted before a refusal').to.be.at.least(most);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it('admits a request after the returned wait, and refuses it 1 µs earlier', () => {
    fc.assert(
      fc.property(windowLimit, windowMs, calls, (most, ofMs, list) => {
        const window = new SlidingWindow(ofMs);
        for (const call of timed(list, ofMs)) {
          if (enter(window, call, most) !== false) continue;
          const counts = window.find(call.subject, MANY, call.atUs);
          if (!counts) throw new Error('not counted');
          const oldest = counts.bySlice.findLastIndex((count) => count > 0);
          const freeUs = (counts.slice - oldest + WINDOW_SLICES + 1) * ofMs * 100;
          const copy = (atUs: number): number => window.find(call.subject, MANY, atUs)?.total ?? -1;
          expect(copy(freeUs - 1)).to.be.at.least(most);
          expect(copy(freeUs)).to.be.below(most);
          return;
        }
      }),
      { numRuns: 300 },
    );
  });

  it('keeps only the subjects of the last two windows', () => {
    const window = new SlidingWindow(1000);
    for (let i = 0; i < 5000; i++) enter(window, { atUs: BEGIN_US + i * 10_000, subject: `u${i}` }, 1);
    expect(window.size).to.be.at.most(200);
    enter(window, { atUs: BEGIN_US + 3_600_000_000, subject: 'late' }, 1);
    expect(window.size).to.equal(1);
  });

  it('forgets no request if the clock is set back', () => {
    const window = new SlidingWindow(10_000);
    enter(window, { atUs: BEGIN_US, subject: 'a' }, 2);
    enter(window, { atUs: BEGIN_US + 1_500_000, subject: 'a' }, 2);
    expect(window.find('a', MANY, BEGIN_US + 500_000)?.total).to.equal(1);
  });
});
