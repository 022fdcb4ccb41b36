import { spawn } from 'node:child_process';
import type { Environment } from '../core/config/load.js';
import type { Log } from '../core/ports/log.js';
import { runProgram, type Running } from '../programs/run-program.js';

/** Number of messages to the watchdog within the time after which it would kill the program. */
const MESSAGES = 3;
/**
 * Node has no Unix datagram sockets, so a small shell passes lines on until its input closes with this process.
 * Starting `systemd-notify` from a process with a large heap would block it for milliseconds each time.
 */
const PASS_LINES_ON = 'while read -r line; do systemd-notify "$line"; done';

/** Tells systemd (`Type=notify`, `WatchdogSec`) that the program is ready and alive. @throws what `start` throws */
export async function runUnderSystemd(
  log: Log,
  start: (fail: (error: unknown) => void) => Promise<Running>,
  { PATH, NOTIFY_SOCKET, WATCHDOG_USEC }: Environment = process.env,
): Promise<void> {
  await runProgram(log, start);
  if (NOTIFY_SOCKET === undefined) return;
  const env = { PATH, NOTIFY_SOCKET }; // passes on no secrets
  const shell = spawn('/bin/sh', ['-c', PASS_LINES_ON], { env, stdio: ['pipe', 'ignore', 'inherit'] });
  shell.on('error', (err) => log.error({ err }, 'systemd gets no messages from this program'));
  shell.stdin.on('error', () => undefined); // systemd stops the shell together with this program
  shell.unref();
  shell.stdin.write('READY=1\n');
  const watchdogMs = Number(WATCHDOG_USEC ?? 0) / 1000;
  if (watchdogMs > 0) setInterval(() => shell.stdin.write('WATCHDOG=1\n'), watchdogMs / MESSAGES).unref();
}
