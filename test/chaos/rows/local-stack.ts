import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { rememberPorts } from '../../../deploy/local/stack/instance.js';
import { listeningPorts } from '../../../deploy/local/stack/listening-ports.js';
import { readPidFile } from '../../../deploy/local/stack/pid-file.js';
import { claimedPorts, pickFreePorts } from '../../../deploy/local/stack/ports.js';
import { identityOf } from '../../../deploy/local/stack/process-identity.js';
import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import { openStack } from '../../../deploy/local/stack/stack.js';
import type { Arena } from '../arena.js';
import { Bystander } from '../harness/bystander.js';
import { expectEqual, expectTrue } from '../harness/expect.js';
import { folderBeside } from '../harness/folder-beside.js';
import { NOBODY, resultOf, StackCommands } from '../harness/stack-commands.js';
import type { Row } from '../row.js';

// L1 and L2: starts of the stack on this machine that must not happen, not twice, or are interrupted.

const LONG_MS = 400_000;

/** Somebody listens on one of the ports of the folder: one sentence, and no server is started. */
async function takePort(arena: Arena, stack: StackCommands): Promise<void> {
  const ports = pickFreePorts(listeningPorts());
  rememberPorts(stack.paths.instanceFile, ports);
  const { port, label } = arena.random.pick(claimedPorts(ports));
  const holder = await Bystander.start(port);
  arena.atEnd(() => holder.end());
  await arena.bite(`somebody else listens on port ${port}`, () => listeningPorts().some((one) => one.port === port));

  const { code, result, error } = await stack.run('up');
  expectEqual([code, result], [1, 'failed'], 'the end of `stack up`');
  const named = String(error).startsWith(`Port ${port} (${label}) is in use by pid ${holder.pid} (`);
  expectTrue(named, `it names port and holder: ${String(error)}`);
  expectEqual(await stack.pids(), [...NOBODY], 'servers that run');
  expectTrue(!existsSync(dirname(stack.paths.data('redis'))), 'nothing was written beside the choice of ports');
  expectTrue(holder.alive, 'the holder of the port lives');
  await holder.end();
}

/** Every pid file, and the lock of a start, names a process that got the pid of one of ours later. */
function plantStalePids({ paths }: StackCommands, { pid }: Bystander): void {
  const noted = { ...identityOf(pid), startTicks: '1' };
  const files = [...SERVER_NAMES.map((name) => paths.pidFile(name)), paths.lockFile];
  for (const file of files) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify(noted));
  }
}

/** A second `up` during the first and one after it say what is the case, and start nothing. */
async function startTwice(arena: Arena, stack: StackCommands): Promise<void> {
  const first = stack.begin('up');
  const starter = (): number | undefined => readPidFile(stack.paths.lockFile)?.pid;
  await arena.bite('the first `stack up` is at it', () => starter() !== undefined);
  const pid = starter();
  const during = await stack.run('up');
  expectEqual([during.code, during.result], [1, 'failed'], 'the end of the second');
  const says = `Process ${pid} is starting this stack already; wait until it is done.`;
  expectEqual(during.error, says, 'what the second says');

  const up = resultOf(await first.end);
  expectEqual([up.code, up.result, up.started], [0, 'up', [...SERVER_NAMES]], 'the end of the first');
  const pids = await stack.pids();
  const after = await stack.run('up');
  expectEqual([after.code, after.result, after.started], [0, 'up', []], 'the end of the third');
  expectEqual(await stack.pids(), pids, 'servers that run');
}

const STARTS: Row = {
  id: 'L1',
  title:
    'a port in use, stale pid files of a stranger, `stack up` twice: a sentence each, nothing half started or signalled',
  ...{ fast: false, alone: true, books: 'none' },
  timeoutMs: LONG_MS,
  async run(arena) {
    const dir = folderBeside(arena, 'starts');
    rmSync(dir, { recursive: true, force: true });
    const stack = new StackCommands(arena, dir);
    arena.atEnd(async () => {
      await openStack({ dir }).down({ signal: 'SIGKILL' });
      rmSync(dir, { recursive: true, force: true });
    });
    await takePort(arena, stack);

    const anonymous = await Bystander.start();
    arena.atEnd(() => anonymous.end());
    plantStalePids(stack, anonymous);
    const nothing = await stack.run('down');
    expectEqual([nothing.code, nothing.stopped], [0, []], 'what `stack down` stopped');
    await arena.bite('the pid of a stranger stood in every pid file', () => anonymous.alive);
    plantStalePids(stack, anonymous);
    await startTwice(arena, stack);

    const down = await stack.run('down');
    expectEqual([down.code, [...(down.stopped as string[])].sort()], [0, [...SERVER_NAMES].sort()], 'what was stopped');
    const ours = new Set(claimedPorts(openStack({ dir }).ports).map(({ port }) => port));
    expectTrue(!listeningPorts().some(({ port }) => ours.has(port)), 'nobody listens on its ports any more');
    expectTrue(anonymous.alive, 'the stranger was never signalled');
    arena.faultEnded();
  },
};

/** Processes whose command line names the folder: servers, and what prepares their data. */
function processesOf(dir: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dir);
    } catch {
      return false; // it ended meanwhile
    }
  });
}

const INTERRUPTED: Row = {
  ...{ id: 'L2', variant: 'first_start' },
  title: 'Ctrl-C during the first start of a stack: nothing of it runs on, the next start works',
  ...{ fast: false, alone: true, books: 'none' },
  timeoutMs: LONG_MS,
  async run(arena) {
    const dir = folderBeside(arena, 'first-start');
    rmSync(dir, { recursive: true, force: true });
    const stack = new StackCommands(arena, dir);
    arena.atEnd(async () => {
      await openStack({ dir }).down({ signal: 'SIGKILL' });
      rmSync(dir, { recursive: true, force: true });
    });
    rememberPorts(stack.paths.instanceFile, pickFreePorts(listeningPorts()));
    const name = arena.random.pick(SERVER_NAMES);
    const first = stack.begin('up');
    const isStarted = (): boolean => readPidFile(stack.paths.pidFile(name)) !== null;
    await arena.until(`${name} is started`, isStarted, LONG_MS, 5);
    first.signal('SIGINT');
    const { code, result, error } = resultOf(await first.end);
    await arena.bite(`a start was interrupted after that of ${name}`, () => code === 130 && result === 'failed');
    arena.faultEnded();
    expectEqual(error, 'Interrupted; what had been started is stopped again.', 'what it says');
    expectEqual(await stack.pids(), [...NOBODY], 'servers that run');
    expectEqual(processesOf(dir), [], 'processes of the folder');

    const next = await stack.run('up');
    expectEqual([next.code, next.result, next.started], [0, 'up', [...SERVER_NAMES]], 'the next start');
    expectEqual((await stack.run('down')).code, 0, 'the end of `stack down`');
    expectEqual(processesOf(dir), [], 'processes of the folder afterwards');
  },
};

export const LOCAL_STACK_ROWS: readonly Row[] = [STARTS, INTERRUPTED];
