import { expect } from 'chai';
import { unanswered } from '../../../../src/operate/broker/half-messages.js';

describe('unanswered half messages', () => {
  const parts = (from: number, end: number, answered: readonly number[]) =>
    unanswered({ from, end }, new Set(answered)).map((part) => [part.from, part.end]);
  const upTo = (from: number, end: number): number[] => Array.from({ length: end - from }, (_, index) => from + index);

  it('are read without the answered half messages', () => {
    expect(parts(5, 9, [])).to.deep.equal([[5, 9]]);
    expect(parts(5, 5, [])).to.deep.equal([]);
    expect(parts(5, 205, upTo(5, 205))).to.deep.equal([]);
    expect(parts(0, 200, upTo(0, 190))).to.deep.equal([[190, 200]]);
    expect(parts(0, 200, upTo(10, 190))).to.deep.equal([
      [0, 10],
      [190, 200],
    ]);
  });

  it('are read in one request, together with a few answered messages between them', () => {
    expect(parts(0, 40, upTo(1, 17))).to.deep.equal([[0, 40]]);
    expect(parts(0, 40, upTo(1, 18))).to.deep.equal([
      [0, 1],
      [18, 40],
    ]);
  });
});
