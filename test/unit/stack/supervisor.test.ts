import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { getPriority } from 'node:os';
import sinon from 'sinon';
import { SupervisedProgram } from '../../../deploy/local/supervisor.js';

describe('a supervised program', () => {
  let clock: sinon.SinonFakeTimers;
  let children: EventEmitter[];
  let sentences: string[];
  let program: SupervisedProgram;
  let signals: unknown[];
  let fork: () => ChildProcess;

  beforeEach(() => {
    clock = sinon.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    children = [];
    sentences = [];
    signals = [];
    fork = (): ChildProcess => {
      const kill = (signal: unknown): boolean => signals.push(signal) > 0;
      const child = Object.assign(new EventEmitter(), { exitCode: null, signalCode: null, kill });
      children.push(child);
      return child as unknown as ChildProcess;
    };
    const spec = { name: 'worker', args: ['worker'], env: {} };
    program = new SupervisedProgram(spec, (sentence) => sentences.push(sentence), fork);
  });
  afterEach(() => clock.restore());

  const ready = (child: number, port: number): boolean | undefined =>
    children[child]?.emit('message', { ready: `metrics on ${port}`, facts: { metricsPort: port } });
  const start = async (): Promise<void> => {
    const started = program.start();
    ready(0, 1);
    expect((await started).facts).to.deep.equal({ metricsPort: 1 });
  };

  it('is started again until it runs when it dies, and reports its new addresses', async () => {
    await start();
    children[0]?.emit('exit', 1, null);
    await clock.tickAsync(1000);
    children[1]?.emit('exit', 2, null);
    await clock.tickAsync(1000);
    ready(2, 3);
    await clock.tickAsync(0);
    expect(sentences).to.deep.equal([
      'The worker died (exit code 1); starting it again.',
      'It did not start: the worker ended right after its start (exit code 2); see its lines above; starting it again.',
      'Restarted: metrics on 3.',
    ]);
    expect(program.facts).to.deep.equal({ metricsPort: 3 });
  });

  it('stays down when it dies and was to run once', async () => {
    program = new SupervisedProgram(
      { name: 'api', args: ['api'], env: {}, once: true },
      (line) => sentences.push(line),
      fork,
    );
    await start();
    children[0]?.emit('exit', null, 'SIGKILL');
    await clock.tickAsync(5000);
    expect([children.length, sentences]).to.deep.equal([1, []]);
  });

  it('gets a lower CPU priority when it is the keeper, also after a restart', async () => {
    const sleepers = [0, 1, 2].map(() => spawn('sleep', ['60'], { stdio: 'ignore' }));
    const withPid = (): ChildProcess => {
      const child = fork();
      return Object.assign(child, { pid: sleepers[children.length - 1]?.pid });
    };
    const own = getPriority();
    const low = Math.max(own, 10);
    const nice = (): number[] => sleepers.map(({ pid }) => getPriority(pid));
    try {
      program = new SupervisedProgram({ name: 'keeper', args: ['keeper'], env: {} }, () => undefined, withPid);
      await start();
      expect(nice()).to.deep.equal([low, own, own]);
      children[0]?.emit('exit', 1, null);
      await clock.tickAsync(1000);
      expect(nice()).to.deep.equal([low, low, own]);
      void new SupervisedProgram({ name: 'api', args: ['api'], env: {} }, () => undefined, withPid).start();
      expect(nice(), 'an api does not').to.deep.equal([low, low, own]);
    } finally {
      for (const sleeper of sleepers) sleeper.kill();
    }
  });

  it('stays down when it is stopped in the pause before a restart', async () => {
    await start();
    Object.assign(children[0] as object, { exitCode: 1 });
    children[0]?.emit('exit', 1, null);
    await program.stop();
    await clock.tickAsync(5000);
    expect(children).to.have.length(1);
  });

  it('is not started again when it was stopped', async () => {
    await start();
    const stopped = program.stop();
    children[0]?.emit('exit', 0, null);
    await stopped;
    await clock.tickAsync(5000);
    expect(children).to.have.length(1);
    expect(sentences).to.deep.equal([]);
  });
});
