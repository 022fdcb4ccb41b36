import { expect } from 'chai';
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pause, until } from '../chaos/harness/wait.js';

const START_TIMEOUT_MS = 60_000;
const WATCHDOG_MS = 600;

/** A program, supervised by this process, that opens a resource and then runs `start`. */
const program = (start: string): string => `
  import { runUnderSystemd } from './src/cli/run-under-systemd.ts';
  import { silentLog } from './test/helpers/silent-log.ts';
  setInterval(() => undefined, 1000);
  runUnderSystemd(silentLog, () => ${start}).catch(() => (process.exitCode = 3));
`;
const FAILS = program("Promise.reject(new Error('refused'))");
const STARTS = program("Promise.resolve({ ready: 'ready', facts: {}, stop: () => Promise.resolve() })");

function run(code: string, env: NodeJS.ProcessEnv = {}): { child: ChildProcess; exit: Promise<number | null> } {
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, ...env },
    detached: true, // its own process group, like a systemd unit
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS - 2_000);
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve)).finally(() => clearTimeout(timer));
  return { child, exit };
}

describe('run-program', () => {
  it('ends if its start fails, even with open resources, supervised or not [R9]', async () => {
    expect(await run(FAILS).exit).to.equal(3);
  });

  it('tells systemd when it is ready, and that it is alive until its event loop hangs', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'seckill-notify-'));
    const said = join(folder, 'said');
    const messages = (): string[] => (existsSync(said) ? readFileSync(said, 'utf8').trim().split('\n') : []);
    writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$1" >> ${said}\n`);
    chmodSync(join(folder, 'systemd-notify'), 0o755);
    const { child, exit } = run(STARTS, {
      NOTIFY_SOCKET: join(folder, 'socket'),
      WATCHDOG_USEC: String(WATCHDOG_MS * 1000),
      PATH: `${folder}:${process.env.PATH}`,
    });
    try {
      await until('it has told the watchdog twice', () => messages().length >= 3);
      expect(messages().slice(0, 3)).to.deep.equal(['READY=1', 'WATCHDOG=1', 'WATCHDOG=1']);
      child.kill('SIGSTOP');
      await pause(WATCHDOG_MS / 3); // the shell forwards what it has received
      const before = messages().length;
      await pause(2 * WATCHDOG_MS);
      expect(messages().length, 'no message while it hangs').to.equal(before);
      child.kill('SIGCONT');
      process.kill(-(child.pid as number), 'SIGTERM'); // like systemd, stops every process of the unit at once
      expect(await exit, 'it stops without an error').to.equal(0);
    } finally {
      child.kill('SIGKILL');
      rmSync(folder, { recursive: true });
    }
  });
});
