import { expect } from 'chai';
import { GrantedTime } from '../../deploy/local/stack/granted-time.js';

/** Less of the machine than this, and a late answer says nothing about the product. */
const FAIR_SHARE = 0.8;
const SAMPLE_EVERY_MS = 50;

/**
 * Asserts a promise about time: one of three tries keeps it. One try can be late by chance, a product that is late is so each
 * time. Where every late try had too little of the machine, the test says so and is skipped.
 * @param measure one try, on data of its own, in ms
 */
export async function expectPromise(
  test: Pick<Mocha.Context, 'skip'>,
  promisedMs: number,
  measure: () => Promise<number>,
  { tries = 3, startTime = () => new GrantedTime() } = {},
): Promise<void> {
  const seen: { readonly tookMs: number; readonly share: number }[] = [];
  while (seen.length < tries) {
    const time = startTime();
    const sampler = setInterval(() => time.readMs(), SAMPLE_EVERY_MS);
    const tookMs = await measure().finally(() => clearInterval(sampler));
    seen.push({ tookMs, share: time.share });
    console.log(
      `      · ${tookMs.toFixed(0)} of ${promisedMs} ms, with ${(time.share * 100).toFixed(0)} % of the machine`,
    );
    if (tookMs < promisedMs) return;
  }
  const fair = seen.filter(({ share }) => share >= FAIR_SHARE).map(({ tookMs }) => tookMs);
  if (fair.length > 0) expect(Math.min(...fair), 'ms').to.be.below(promisedMs);
  console.log(`      · not judged: the machine was busy in each of ${tries} tries`);
  test.skip();
}
