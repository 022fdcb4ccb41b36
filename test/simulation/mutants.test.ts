import { expect } from 'chai';
import { MUTANTS } from './mutants.js';
import { catchMutant } from './run.js';

/** The rarest one is noticed once in a few thousand runs. */
const RUNS_MAX = 20_000;
const TIMEOUT_MS = 480_000;

describe('simulation of programs with one broken rule', () => {
  for (const mutant of MUTANTS) {
    it(`${mutant.name} is noticed: ${mutant.breaks}`, async function () {
      this.timeout(TIMEOUT_MS);
      const caught = await catchMutant(mutant, 1, RUNS_MAX);
      expect(caught, `not noticed in ${RUNS_MAX} runs`).not.to.equal(null);
      console.log(`      · seed ${caught?.seed}: ${caught?.code} ${caught?.what.split('\n')[0]}`);
    });
  }
});
