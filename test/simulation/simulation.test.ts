import { expect } from 'chai';
import { inSimulatedTime } from './engine/simulated-time.js';
import { missingFrom } from './reached.js';
import { hashOf, simulate, simulateSeeds } from './run.js';
import { emptyTally, type Tally } from './tally.js';

/** A few seconds of work. `npm run simulate` runs 20,000 seeds and checks that every fault and event occurs. */
const RUNS = 300;
/** Kinds of faults that occur, mostly in the first 100 runs. */
const KINDS_MIN = 10;

describe('simulation of the programs with in-memory servers', () => {
  it('produces the same run, call by call, from the same seed', async () => {
    const seeds = [1, 2, 3, 4711, 123_456_789];
    const traces = (): Promise<string[][]> =>
      inSimulatedTime(async () => {
        const all: string[][] = [];
        for (const seed of seeds) all.push([...(await simulate(seed, true)).lines]);
        return all;
      });
    const [first, again] = [await traces(), await traces()];
    expect(first.map(hashOf)).to.deep.equal(again.map(hashOf));
    expect(new Set(first.map(hashOf)).size, 'seeds differ').to.equal(seeds.length);
    expect(first.every((lines) => lines.length > 20)).to.equal(true);
  });

  it('behaves the same with and without a trace', async () => {
    await inSimulatedTime(async () => {
      for (const seed of [11, 12, 13]) {
        const [plain, traced] = [await simulate(seed), await simulate(seed, true)];
        expect([...plain.world.counts]).to.deep.equal([...traced.world.counts]);
        expect(plain.world.scheduler.happened).to.equal(traced.world.scheduler.happened);
      }
    });
  });

  it(`keeps I1 to I5 in ${RUNS} runs with faults [I1]`, async () => {
    const tally = await simulateSeeds(1, RUNS);
    await explain(tally);
    expect(tally.runs).to.equal(RUNS);
    expect(Object.keys(tally.faults), 'kinds of faults that happened').to.have.length.above(KINDS_MIN);
  });

  it('names events that no run has reached', () => {
    const nothing = missingFrom(emptyTally());
    expect(nothing).to.include('the event "answer: sold_out" never happened');
    expect(nothing).to.include('no fault hit the call "deduct"');
  });
});

/** Fails with the trace of the first run that broke a promise. */
async function explain({ broken, brokenRuns }: Tally): Promise<void> {
  const [first] = broken;
  if (first === undefined) return;
  const { seed, code, what } = first;
  const { lines } = await inSimulatedTime(() => simulate(seed, true));
  console.log(lines.join('\n'));
  expect.fail(`${brokenRuns} runs broke a promise, the first with seed ${seed}: ${code} ${what}`);
}
