import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { rememberPorts } from '../../../deploy/local/stack/settings.js';
import { listeningPorts, claimedPorts, pickFreePorts } from '../../../deploy/local/stack/ports.js';
import { readPidFile, identityOf } from '../../../deploy/local/stack/processes.js';
import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import { openStack } from '../../../deploy/local/stack/stack.js';
import type { Arena } from '../context.js';
import { Buyers, userIds } from '../harness/buyers.js';
import { expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { biteInTries, KILLS_MAX, underLoad } from '../harness/load.js';
import { rowsOf, workLeft } from '../harness/orders.js';
import type { Program } from '../harness/programs.js';
import { endOfLog } from '../harness/redis.js';
import { openSale } from '../harness/sales.js';
import {
  bootBeside,
  Bystander,
  fingerprintOf,
  folderBeside,
  NOBODY,
  restBeside,
  resultOf,
  StackCommands,
} from '../harness/second-stack.js';
import { mendServers, type StackHands } from '../harness/stack-controls.js';
import type { Row } from '../scenario.js';

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

// L2: the whole machine goes down at once.

/** @returns the api; its batches leave one after the other, so that some are under way at any moment */
async function startAll(arena: Arena): Promise<Program> {
  const env = { BATCH_GATHER_MS: '0' };
  const [api] = await Promise.all([arena.start('api', { env }), arena.start('worker'), arena.start('keeper')]);
  return api;
}

/** kill -9 of every program and every server, none before another. */
async function killEverything(arena: Arena): Promise<void> {
  const { stack, programs } = arena;
  const servers = SERVER_NAMES.map((name) => stack.servers.server(name));
  const ran = servers.every((server) => server.pid() !== null);
  const [exits] = await Promise.all([
    Promise.all(programs.running.map((program) => program.crash())),
    ...servers.map((server) => server.stop({ signal: 'SIGKILL' })),
  ]);
  await arena.bite('every program and every server was killed', () => {
    const gone = servers.every((server) => server.pid() === null);
    return ran && gone && exits.length === 3 && exits.every(({ signal }) => signal === 'SIGKILL');
  });
}

const EVERYTHING: Row = {
  id: 'L2',
  title: 'kill -9 of every program and every server at once under load, then a new start: every open batch ends',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [{ saleId }, first] = await Promise.all([arena.openSale({ stock: 100_000 }), startAll(arena)]);
    let api = first;
    const buyers = arena.buyers(saleId, () => [api]);
    const { opLog } = buyers;
    await biteInTries(arena, 'purchases were under way and batches open', KILLS_MAX, async (tries) => {
      const rush = { parallel: 48, accepted: random.whole(300, 900), prefix: `load-${tries}` };
      const { unheard } = await underLoad(arena, buyers, rush, () => killEverything(arena));
      await mendServers(stack.servers);
      await endOfLog(stack); // we are connected again
      const open = await stack.audit.store.pendingCount({ saleId, bucket: 0 });
      api = await startAll(arena);
      return unheard > 0 && open > 0;
    });
    arena.faultEnded();

    await arena.until(
      'who does not know hears the truth',
      async () => {
        await buyers.askAgain();
        return opLog.count('unknown') === 0;
      },
      60_000,
      1000,
    );
    const { rows, sold } = await arena.rest(saleId);
    expectEqual([rows, sold], [opLog.count('ok'), opLog.count('ok')], 'rows, units, and buyers who heard yes');
  },
};

const portsOf = ({ servers }: StackHands): number[] => claimedPorts(servers.ports).map(({ port }) => port);
const pidsOf = ({ servers }: StackHands): (number | null)[] => SERVER_NAMES.map((name) => servers.server(name).pid());

/** Sells in a second system, from the first request to rest. @returns its orders */
async function sellBeside(arena: Arena, beside: StackHands, users: readonly string[]): Promise<number> {
  const [api] = await Promise.all(
    (['api', 'worker', 'keeper'] as const).map((name) => arena.start(name, { env: { ...beside.env } })),
  );
  const { saleId } = await openSale(beside, { stock: users.length });
  const buyers = new Buyers(saleId, beside.env.JWT_SECRET, () => [api?.url ?? '']);
  await buyers.rush(users, 8, { tries: 20 });
  const { rows } = await restBeside(beside, buyers);
  await buyers.close();
  return rows;
}

const BESIDE: Row = {
  id: 'L4',
  title: 'a second stack boots, sells and ends while the first one serves: other ports, no row, key or message touched',
  ...{ fast: false, alone: true },
  timeoutMs: LONG_MS,
  async run(arena) {
    const { stack, random } = arena;
    const [api, , keeper] = await Promise.all([arena.start('api'), arena.start('worker'), arena.start('keeper')]);
    const { saleId } = await arena.openSale({ stock: 500 });
    const buyers = arena.buyers(saleId, [api]);
    const users = userIds(random.whole(10, 40));
    await buyers.rush(users, 8, { tries: 20 });
    await arena.rest(saleId);
    await arena.until('all news are out', async () => (await workLeft(stack)) === 0, 30_000);
    await keeper.stop(); // it would end what nobody has paid, also of earlier rows
    const [before, pids] = [await fingerprintOf(stack), pidsOf(stack)];
    const watched = buyers.watch(users);

    const beside = await bootBeside(arena, 'beside');
    const taken = new Set(portsOf(stack));
    expectEqual(
      portsOf(beside).filter((port) => taken.has(port)),
      [],
      'ports of both',
    );
    const others = userIds(random.whole(40, 80)); // the same names: in the first they would be found
    const sold = await sellBeside(arena, beside, others);
    await arena.bite(`a second system sold ${sold} units beside the first`, () => sold === others.length);
    await beside.servers.down();
    arena.faultEnded();

    await watched.stop();
    expectEqual(await fingerprintOf(stack), before, 'rows, keys and messages of the first');
    expectEqual(pidsOf(stack), pids, 'servers of the first');
    const late = userIds(5, 'late-');
    await buyers.rush(late, 5, { tries: 20 });
    await arena.until('it sells on', async () => (await rowsOf(stack, saleId)) === users.length + late.length, 30_000);
    expectFields(await arena.rest(saleId), { rows: users.length + late.length, failedRows: 0 }, 'orders of the first');
  },
};

export const LOCAL_STACK_SCENARIOS: readonly Row[] = [STARTS, INTERRUPTED, EVERYTHING, BESIDE];
