import { expect } from 'chai';
import { afterGranted, GrantedTime, parseRunnable } from '../../../deploy/local/stack/granted-time.js';

describe('unit granted time', () => {
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

  it('passes like wall time while there is a core for everyone', () => {
    machine.runnable = 2;
    expect(pass(start(), 10_000)).to.be.closeTo(10_000, 1e-6);
  });

  it('passes by the share of a core that each gets', () => {
    machine.runnable = 8;
    const time = start();
    expect(pass(time, 10_000)).to.be.closeTo(2_500, 1e-6);
    expect(time.elapsedMs).to.equal(10_000);
    expect(time.share).to.be.closeTo(0.25, 1e-6);
  });

  it('counts only the cores of a pinned process', () => {
    machine.cores = 1;
    machine.runnable = 2;
    expect(pass(start(), 10_000)).to.be.closeTo(5_000, 1e-6);
  });

  it('passes slower on a slower machine', () => {
    machine.speed = 0.5;
    expect(pass(start(), 10_000)).to.be.closeTo(5_000, 1e-6);
  });

  it('never stands still: five seconds grant at least one', () => {
    Object.assign(machine, { runnable: 200, speed: 0.25 });
    expect(pass(start(), 10_000)).to.be.closeTo(2_000, 1e-6);
  });

  it('averages the load over a second: one busy moment changes little, a busy while all', () => {
    const time = start();
    pass(time, 1_000);
    machine.runnable = 40;
    const momentMs = pass(time, 100);
    expect(momentMs).to.be.within(35, 99);
    machine.runnable = 1;
    pass(time, 10_000);
    machine.runnable = 8;
    pass(time, 10_000);
    expect(pass(time, 1_000)).to.be.closeTo(250, 1);
  });

  it('reads how many threads compete with the reader, and one where there is no such figure', () => {
    expect(parseRunnable('4.88 1.60 0.69 10/849 7973\n')).to.equal(9);
    expect(parseRunnable('0.00 0.00 0.00 1/849 7973\n')).to.equal(1);
    expect(parseRunnable('')).to.equal(1);
  });

  it('calls back after the granted time, unless it is cancelled', async () => {
    const calls: string[] = [];
    const cancel = afterGranted(5, () => calls.push('cancelled'));
    cancel();
    await new Promise<void>((resolve) => afterGranted(20, resolve));
    expect(calls).to.deep.equal([]);
  });
});
