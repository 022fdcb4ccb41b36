import { expect } from 'chai';
import { GrantedTime, parseRunnable } from '../../../deploy/local/stack/granted-time.js';

describe('granted time', () => {
  const machine = { cores: 2, nowMs: 0, runnable: 1, speed: 1 };
  const start = (): GrantedTime =>
    new GrantedTime({
      cores: machine.cores,
      nowMs: () => machine.nowMs,
      runnable: () => machine.runnable,
      speed: () => machine.speed,
    });
  /** Reads ten times a second, as a wait does. */
  const pass = (time: GrantedTime, ms: number): number => {
    const [fromMs, endMs] = [time.readMs(), machine.nowMs + ms];
    while (machine.nowMs < endMs) {
      machine.nowMs += 100;
      time.readMs();
    }
    return time.readMs() - fromMs;
  };

  beforeEach(() => void Object.assign(machine, { cores: 2, nowMs: 5_000, runnable: 1, speed: 1 }));

  it('passes in proportion to the share of a core that each process gets', () => {
    machine.runnable = 8;
    const time = start();
    expect(pass(time, 10_000)).to.be.closeTo(2_500, 1e-6);
    expect(time.elapsedMs).to.equal(10_000);
    expect(time.share).to.be.closeTo(0.25, 1e-6);
  });

  it("counts only the process's own cores if it is pinned", () => {
    machine.cores = 1;
    machine.runnable = 2;
    expect(pass(start(), 10_000)).to.be.closeTo(5_000, 1e-6);
  });

  it('passes slower on a slower machine', () => {
    machine.speed = 0.5;
    expect(pass(start(), 10_000)).to.be.closeTo(5_000, 1e-6);
  });

  it('grants at least one second in five on a busy machine', () => {
    Object.assign(machine, { runnable: 200, speed: 0.25 });
    expect(pass(start(), 10_000)).to.be.closeTo(2_000, 1e-6);
  });

  it('reads how many threads compete, or assumes one if the figure is missing', () => {
    expect(parseRunnable('4.88 1.60 0.69 10/849 7973\n')).to.equal(9);
    expect(parseRunnable('0.00 0.00 0.00 1/849 7973\n')).to.equal(1);
    expect(parseRunnable('')).to.equal(1);
  });
});
