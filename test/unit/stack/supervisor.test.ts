import { expect } from 'chai';
import { type ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
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

  it('is restarted until it runs if it dies, and reports its new addresses', async () => {
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

  it('stays down if it is stopped in the pause before a restart', async () => {
    await start();
    Object.assign(children[0] as object, { exitCode: 1 });
    children[0]?.emit('exit', 1, null);
    await program.stop();
    await clock.tickAsync(5000);
    expect(children).to.have.length(1);
  });

  it('is not restarted if it was stopped', async () => {
    await start();
    const stopped = program.stop();
    children[0]?.emit('exit', 0, null);
    await stopped;
    await clock.tickAsync(5000);
    expect(children).to.have.length(1);
    expect(sentences).to.deep.equal([]);
  });
});
