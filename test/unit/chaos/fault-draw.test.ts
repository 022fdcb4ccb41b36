import { expect } from 'chai';
import { FAULT_KINDS, FaultDraw } from '../../chaos/long/faults.js';
import { createRandom } from '../../chaos/random.js';

describe('the faults of a long run', () => {
  const STEP = 0.02;
  const shares = Array.from({ length: 49 }, (_, index) => (index + 1) * STEP);
  const drawn = (seed: number) => {
    const draw = new FaultDraw(createRandom(`${seed}`), FAULT_KINDS, STEP);
    return shares.map((share) => draw.draw(share));
  };

  it('are the same when the seed is the same', () => {
    expect(drawn(7)).to.deep.equal(drawn(7));
    expect(drawn(7)).not.to.deep.equal(drawn(8));
  });

  it('repeat no kind before every other kind had its turn, and kill the keeper early only', () => {
    for (let seed = 0; seed < 20; seed++) {
      const kinds = drawn(seed).map(({ kind }) => kind);
      expect([...new Set(kinds.slice(0, FAULT_KINDS.length))]).to.have.members([...FAULT_KINDS]);
      const late = kinds.filter((_, index) => (shares[index] ?? 0) > 0.4);
      expect(late).not.to.include('keeper_killed');
    }
  });

  it('stall a program for less time than the broker waits for it', () => {
    for (const { kind, stallMs } of drawn(7))
      expect(stallMs, kind).to.be.within(0, kind.endsWith('_stalled') ? 10_000 : 0);
  });
});
