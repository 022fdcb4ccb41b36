import { expect } from 'chai';
import { Registry } from 'prom-client';
import sinon from 'sinon';
import { keepRunning } from '../../../src/core/job.js';
import { createJobMetrics, createRegistry, loggedError } from '../../../src/process/telemetry.js';
import { version } from '../../../src/process/version.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';
import { silentLog } from '../../helpers/silent-log.js';

describe('an error in the log', () => {
  it('shows its message and stack, but not the command of a Redis error', () => {
    const refused = Object.assign(new Error('WRONGPASS invalid username-password pair'), {
      command: { name: 'auth', args: ['seckill', 'a-secret'] },
    });
    const several = Object.assign(new AggregateError([refused], 'all failed'), { previousErrors: [refused] });
    expect(loggedError(refused)).to.include({ message: refused.message }).and.not.have.property('command');
    for (const error of [refused, several]) {
      const text = JSON.stringify(loggedError(error));
      expect(text).to.contain('WRONGPASS').and.not.contain('a-secret');
    }
  });
});

describe('the registry of a program', () => {
  it('publishes the program with its version and the version of Node', async () => {
    const metrics = await createRegistry('worker').getSingleMetricAsString('seckill_build_info');
    expect(metrics).to.contain(`seckill_build_info{version="${version}",node="${process.version}",program="worker"} 1`);
  });
});

describe('an unfinished run of a job', () => {
  it('shows the age of the oldest run until it ends', async () => {
    const timers = sinon.useFakeTimers({ toFake: ['performance'] });
    const registry = new Registry();
    const metrics = createJobMetrics(registry);
    const shown = async (): Promise<string[]> =>
      (await registry.metrics()).split('\n').filter((line) => line.startsWith('seckill_keeper_job_running_seconds'));
    let endRun = (): void => undefined;
    const runOnce = (): Promise<void> => new Promise((resolve) => (endRun = resolve));
    const stopping = new AbortController();
    const ports = { clock: new SteppedClock(), log: silentLog, metrics };
    const loop = keepRunning({ name: 'hangs', runOnce }, 1000, stopping.signal, ports);
    timers.tick(900_000);
    const endSecond = metrics.jobBegan('hangs');
    timers.tick(60_000);
    expect(await shown()).to.deep.equal(['seckill_keeper_job_running_seconds{task="hangs"} 960']);
    endSecond();
    stopping.abort();
    endRun();
    await loop;
    expect(await shown()).to.deep.equal([]);
  });
});
