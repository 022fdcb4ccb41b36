import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  readPidFile,
  signalPidFile,
  writePidFile,
  identityOf,
  isStopped,
  parseStat,
} from '../../../deploy/local/stack/processes.js';
import { useTempFolder } from './temp-folder.js';

describe('pid file', () => {
  const folder = useTempFolder();
  const path = (): string => join(folder(), 'redis.pid');
  let child: ChildProcess;
  const pid = (): number => child.pid as number;

  beforeEach(async () => {
    child = spawn('sleep', ['30'], { stdio: 'ignore' });
    await once(child, 'spawn');
  });
  afterEach(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });

  it('leads back to the process that was noted', async () => {
    writePidFile(path(), pid());
    expect(readPidFile(path())?.pid).to.equal(pid());
    expect(signalPidFile(path(), 'SIGTERM')).to.equal(true);
    await once(child, 'exit');
    expect(readPidFile(path()), 'after its end').to.equal(null);
    expect(signalPidFile(path(), 'SIGTERM')).to.equal(false);
  });

  const changed: [string, object][] = [
    ['started at another time', { startTicks: '1' }],
    ['from before a reboot', { bootId: '00000000-0000-0000-0000-000000000000' }],
  ];
  for (const [what, change] of changed) {
    it(`never signals a foreign process that has the pid now: ${what} [L1]`, () => {
      writePidFile(path(), pid());
      const noted = JSON.parse(readFileSync(path(), 'utf8')) as object;
      writeFileSync(path(), JSON.stringify({ ...noted, ...change }));
      expect(readPidFile(path())).to.equal(null);
      expect(signalPidFile(path(), 'SIGKILL')).to.equal(false);
      expect(identityOf(pid()), 'the foreign process lives').to.not.equal(null);
    });
  }

  for (const content of [
    '',
    '{',
    'null',
    '4711',
    '{"pid":-1,"startTicks":"1","bootId":"x"}',
    '{"pid":0}',
    '{"pid":"1"}',
  ]) {
    it(`counts for nothing when damaged: ${content || 'empty'}`, () => {
      writeFileSync(path(), content);
      expect(readPidFile(path())).to.equal(null);
      expect(signalPidFile(path(), 'SIGTERM')).to.equal(false);
    });
  }

  it('is not written for a process that has ended', async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
    writePidFile(path(), pid());
    expect(existsSync(path())).to.equal(false);
  });

  it('tells a stopped process from a running one', async () => {
    expect(isStopped(pid())).to.equal(false);
    child.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(isStopped(pid())).to.equal(true);
    expect(identityOf(pid()), 'stopped is not ended').to.not.equal(null);
  });

  it('reads /proc/<pid>/stat of a command with blanks and brackets in its name', () => {
    const fields = Array.from({ length: 50 }, (_, index) => `f${index + 4}`);
    expect(parseStat(`7 (a) b (c) S ${fields.join(' ')}`)).to.deep.equal({ state: 'S', startTicks: 'f22' });
    expect(parseStat('7 (cut')).to.equal(null);
  });
});
