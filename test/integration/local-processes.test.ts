import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { identityOf, isStopped, readPidFile, signalPidFile, writePidFile } from '../../deploy/local/stack/processes.js';
import { runCommand } from '../../deploy/local/stack/run-command.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';
import { until } from '../chaos/harness/wait.js';
import { killTree } from '../runner/process-tree.js';

describe('processes of the local stack', () => {
  let folder: string;
  let child: ChildProcess;
  const pid = (): number => child.pid as number;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'seckill-processes-'));
    child = spawn('sleep', ['30'], { stdio: 'ignore' });
    await once(child, 'spawn');
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true, force: true });
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });

  it('a pid file reaches its process until that has ended', async () => {
    const path = join(folder, 'redis.pid');
    writePidFile(path, pid());
    expect(readPidFile(path)?.pid).to.equal(pid());
    expect(signalPidFile(path, 'SIGTERM')).to.equal(true);
    await once(child, 'exit');
    expect(readPidFile(path)).to.equal(null);
    expect(signalPidFile(path, 'SIGTERM')).to.equal(false);
  });

  it('a run of tests that is stopped leaves nothing of what it has started', async () => {
    const code =
      "console.log(require('child_process').spawn('sleep', ['30'], { detached: true, stdio: 'ignore' }).pid)";
    const shell = spawn('sh', [
      '-c',
      '"$0" -e "$1"; sleep 30',
      process.execPath,
      `${code}; setInterval(() => {}, 1000)`,
    ]);
    const ended = once(shell, 'exit');
    const [text] = (await once(shell.stdout, 'data')) as [Buffer];
    const server = Number(text.toString());
    expect(identityOf(server), 'it runs').not.to.equal(null);
    killTree(shell.pid as number);
    await ended;
    await until(`process ${server} has ended`, () => identityOf(server) === null);
  });

  it('a stopped process is recognised, and is not taken for ended', async () => {
    expect(isStopped(pid())).to.equal(false);
    child.kill('SIGSTOP');
    await until('the process is stopped', () => isStopped(pid()));
    expect(identityOf(pid())).to.not.equal(null);
  });
});

describe('commands that the launcher runs', () => {
  it('return exit code and output', async () => {
    const { exitCode, output } = await runCommand('sh', ['-c', 'cat; echo err >&2; exit 3'], {
      timeoutMs: 30_000,
      input: 'in ',
    });
    expect(exitCode).to.equal(3);
    expect(output).to.include('in ').and.include('err');
  });

  it('are ended at their time limit, even when they ignore SIGTERM', async () => {
    const { exitCode } = await runCommand('sh', ['-c', 'trap "" TERM; while :; do sleep 0.1; done'], {
      timeoutMs: 300,
    });
    expect(exitCode).to.equal(null);
  });

  it('are ended when their signal is aborted', async () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new StackError('enough')), 100);
    const error = await runCommand('sleep', ['30'], { timeoutMs: 20_000, signal: controller.signal }).catch(
      (e: Error) => e,
    );
    expect(error).to.have.property('message', 'enough');
  });
});
