import { expect } from 'chai';
import { catchInSimulation } from '../mutants/by-simulation.js';
import { MUTANTS } from '../mutants/mutants.js';

/** Three bugs: in message signatures, in markers and in bookkeeping. `npm run mutants` plants all bugs. */
const PLANTED = ['signatures-are-not-checked', 'resolve-leaves-no-marker', 'rows-found-are-counted-again'];

describe('simulation of programs with a planted bug', () => {
  for (const mutant of MUTANTS.filter(({ name }) => PLANTED.includes(name))) {
    it(`notices ${mutant.name}: ${mutant.breaks}`, async () => {
      const caught = await catchInSimulation(mutant);
      expect(caught?.code).to.be.a('string');
    });
  }
});
