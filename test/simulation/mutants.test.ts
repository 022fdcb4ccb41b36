import { expect } from 'chai';
import { catchInSimulation, RUNS_MAX } from '../mutants/by-simulation.js';
import { MUTANTS } from '../mutants/mutants.js';

/** So many seeds take a second. */
const SEARCHED_SHOWN = 100;

describe('simulation of programs with a planted bug', () => {
  for (const mutant of MUTANTS.filter(({ simulation }) => simulation)) {
    it(`${mutant.name} is noticed: ${mutant.breaks}`, async () => {
      const caught = await catchInSimulation(mutant);
      expect(caught, `not noticed in ${RUNS_MAX} runs`).not.to.equal(null);
      console.log(`      · seed ${caught?.seed}: ${caught?.code} ${caught?.what.split('\n')[0]}`);
      const { fromSeed = 1 } = mutant.simulation ?? {};
      if (caught !== null && caught.seed - fromSeed > SEARCHED_SHOWN)
        console.log(`      · searched from seed ${fromSeed} on; to save that time: npm run mutants -- --find-seeds`);
    });
  }
});
