import { expect } from 'chai';
import { vanishedPrograms, type SeenProgram } from '../../../src/core/vanished-programs.js';

const NOW_MS = 10_000_000;
const seen = (
  id: string,
  startedAtMs: number,
  seenAtMs: number,
  kind: SeenProgram['kind'] = 'worker',
): SeenProgram => ({
  kind,
  id,
  startedAtMs: NOW_MS + startedAtMs,
  seenAtMs: NOW_MS + seenAtMs,
});
const idsOf = (gone: readonly SeenProgram[], live: readonly SeenProgram[]): string[] =>
  vanishedPrograms(gone, live, NOW_MS).map(({ id }) => id);

describe('programs that vanished', () => {
  it('are named until another program of their kind starts in their place', () => {
    const [one, two] = [seen('one', -9_000, -3_000), seen('two', -9_000, -2_000)];
    const old = seen('old', -9_000, 0);
    expect(idsOf([one, two], [old])).to.deep.equal(['one', 'two']);
    expect(idsOf([one, two], [old, seen('keeper', -1_000, 0, 'keeper')])).to.deep.equal(['one', 'two']);
    expect(idsOf([one, two], [old, seen('new', -2_500, 0)])).to.deep.equal(['two']);
    expect(idsOf([one, two], [seen('new', -1_000, 0), seen('newer', -500, 0)])).to.deep.equal([]);
  });

  it('are not named if the program in their place vanished later', () => {
    expect(idsOf([seen('one', -9_000, -3_000), seen('two', -2_500, -1_000)], [])).to.deep.equal(['two']);
  });

  it('are forgotten after an hour', () => {
    const removed = (ms: number): SeenProgram => seen('removed', -4_000_000, -ms);
    expect(idsOf([removed(3_599_999)], [])).to.deep.equal(['removed']);
    expect(idsOf([removed(3_600_000)], [])).to.deep.equal([]);
  });
});
