import { expect } from 'chai';
import { SCENARIOS } from '../chaos/scenarios/list.js';
import { MUTANTS, type Mutant } from '../mutants/mutants.js';
import { editedFiles, StaleMutant } from '../mutants/plant.js';

const PROGRAM = /^(src\/.*\.ts|lua\/.*\.lua)$/;
/** The simulation uses these models instead of scripts and statements. */
const MODEL = /^test\/helpers\/memory\/.*\.ts$/;

describe('guard: the planted bugs', () => {
  for (const mutant of MUTANTS) {
    it(`${mutant.name} still fits the code, and changes code that its catchers run`, () => {
      for (const { find, replace } of mutant.edits) expect(replace).not.to.equal(find);
      const files = [...editedFiles(mutant).keys()];
      expect(files.filter((file) => !PROGRAM.test(file) && !MODEL.test(file))).to.be.empty;
      expect(mutant.simulation ?? mutant.chaos, 'nobody has to notice it').not.to.equal(undefined);
      if (mutant.simulation) expect(files.some((file) => file.endsWith('.ts'))).to.equal(true);
      if (mutant.chaos) expect(files.some((file) => PROGRAM.test(file))).to.equal(true);
    });
  }

  it('use existing names and scenarios', () => {
    const names = MUTANTS.map(({ name }) => name);
    expect(new Set(names).size).to.equal(names.length);
    const known = new Set(SCENARIOS.map(({ name }) => name));
    for (const { name, chaos } of MUTANTS) {
      if (chaos === undefined) continue;
      expect(chaos.scenarios, name).not.to.be.empty;
      expect(
        chaos.scenarios.filter((scenario) => !known.has(scenario)),
        name,
      ).to.be.empty;
    }
  });

  it('include a bug that chaos detects for every invariant', () => {
    const broken = new Set(MUTANTS.flatMap(({ chaos }) => chaos?.invariants ?? []));
    expect([...broken].sort()).to.deep.equal(['I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I7', 'I8']);
  });

  it('are reported as stale if their text is missing or occurs twice', () => {
    const [first] = MUTANTS as [Mutant];
    for (const find of ['this text is in no file', 'export']) {
      const edits = [{ file: 'src/core/order.ts', find, replace: '' }];
      expect(() => editedFiles({ ...first, edits })).to.throw(StaleMutant);
    }
  });

  it('change only the programs, never the code that judges them', () => {
    const edited = MUTANTS.flatMap(({ edits }) => edits.map(({ file }) => file));
    expect(edited.filter((file) => /^(test\/(?!helpers\/memory\/)|src\/recovery\/reconcile\/)/.test(file))).to.be.empty;
  });
});
