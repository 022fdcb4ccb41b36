import { expect } from 'chai';
import { SCENARIOS } from '../chaos/scenarios/list.js';
import { editedFiles, StaleMutant } from '../mutants/mutant-build.js';
import { MUTANTS, type Mutant } from '../mutants/mutants.js';

describe('guard: the planted bugs', () => {
  for (const mutant of MUTANTS) {
    it(`${mutant.name} still fits the code, and changes it`, () => {
      for (const { find, replace } of mutant.edits) expect(replace).not.to.equal(find);
      for (const [file] of editedFiles(mutant)) expect(file).to.match(/^(src\/.*\.ts|lua\/.*\.lua)$/);
    });
  }

  it('have names and rows that exist', () => {
    const names = MUTANTS.map(({ name }) => name);
    expect(new Set(names).size).to.equal(names.length);
    const rows = new Set(SCENARIOS.map(({ name }) => name));
    for (const { name, rows: mine } of MUTANTS) {
      expect(mine, name).not.to.be.empty;
      expect(
        mine.filter((row) => !rows.has(row)),
        name,
      ).to.be.empty;
    }
  });

  it('leave no invariant without one', () => {
    const broken = new Set(MUTANTS.flatMap(({ invariants }) => invariants));
    expect([...broken].sort()).to.deep.equal(['I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I7', 'I8']);
  });

  it('are stale when their text is gone, or stands there twice', () => {
    const [first] = MUTANTS as [Mutant];
    for (const find of ['this stands nowhere', 'export']) {
      const edits = [{ file: 'src/core/order.ts', find, replace: '' }];
      expect(() => editedFiles({ ...first, edits })).to.throw(StaleMutant);
    }
  });

  it('are in the programs, never in what judges them', () => {
    const edited = MUTANTS.flatMap(({ edits }) => edits.map(({ file }) => file));
    expect(edited.filter((file) => /^(test|src\/recovery\/reconcile)\//.test(file))).to.be.empty;
  });
});
