import { expect } from 'chai';
import fc from 'fast-check';
import { TOKEN, type BucketLimit } from '../../../../src/core/limits.js';
import { TokenBucket } from '../../../../src/admission/limits/local-limit-store.js';

const limit = fc.record({
  ratePerSecond: fc.integer({ min: 1, max: 100_000 }),
  burst: fc.integer({ min: 1, max: 1000 }),
});
/** Pauses between calls, µs: crowds, trickles and long silences. */
const gapUs = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 50 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 20_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 5_000_000 }) },
);
const BEGIN_US = 1_800_000_000_000_000;

/** Plays calls against a bucket and says when it let one through, µs. */
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

/**
 * The plain model: in no span of time more than burst + rate × span. Whoever can be let in without breaking that, is.
 * Counted in whole numbers of any size, over every span that ends now.
 */
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
  it('lets through whom the plain model lets through, for any pattern of calls', () => {
    fc.assert(
      fc.property(limit, fc.array(gapUs, { maxLength: 150 }), (of, gapsUs) => {
        expect(admitted(of, gapsUs)).to.deep.equal(admittedByModel(of, gapsUs));
      }),
      { numRuns: 300 },
    );
  });

  /** Calls at odd times, `perToken` of them for each token on average, for as long as 500 tokens take, and the burst. */
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
    it(`a bucket ${name} admits burst + rate × time within 1 % of a crowd, and never more`, () => {
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

  it('a clock that is set back gives nothing, and takes nothing', () => {
    const of = { ratePerSecond: 1000, burst: 2 };
    const bucket = new TokenBucket();
    bucket.take(of, BEGIN_US);
    expect(bucket.tokens(of, BEGIN_US - 60_000_000)).to.equal(TOKEN);
    bucket.take(of, BEGIN_US - 60_000_000);
    expect(bucket.tokens(of, BEGIN_US - 60_000_000)).to.equal(0);
  });
});
