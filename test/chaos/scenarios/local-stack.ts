import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { claimedPorts, listeningPorts, pickFreePorts } from '../../../deploy/local/stack/ports.js';
import { readPidFile } from '../../../deploy/local/stack/processes.js';
import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import { rememberInstance } from '../../../deploy/local/stack/settings.js';
import { openStack } from '../../../deploy/local/stack/stack.js';
import type { ScenarioContext } from '../context.js';
import { Buyers, userIds } from '../harness/buyers.js';
import { expectEqual } from '../harness/expect.js';
import { KILLS_MAX, startSystem, underLoad } from '../harness/load.js';
import type { Program } from '../harness/programs.js';
import { endOfAof } from '../harness/redis.js';
import { keeperWorkLeft, pendingCountOf, rowsOf } from '../harness/sale-state.js';
import { openSale } from '../harness/sales.js';
import {
  bootSecondStack,
  checkSecondStack,
  fingerprintOf,
  NONE_RUNNING,
  resultOf,
  siblingFolder,
  StackCommands,
} from '../harness/second-stack.js';
import { restoreServers, type StackControls } from '../harness/stack-controls.js';
import type { Scenario } from '../scenario.js';

// L2, L4: a start is interrupted or follows a crash; two stacks run on one machine.

const LONG_MS = 400_000;

/** Runs `npm run stack` on an empty folder next to the stack, which is removed at the end. */
function stackIn(context: ScenarioContext, name: string): StackCommands {
  const dir = siblingFolder(context, name);
  rmSync(dir, { recursive: true, force: true });
  context.atEnd(async () => {
    await openStack({ dir }).down({ signal: 'SIGKILL' });
    rmSync(dir, { recursive: true, force: true });
  });
  return new StackCommands(context, dir);
}

/** Returns the servers of the folder and the processes that prepare their data, by command line. */
function processesOf(dir: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dir);
    } catch {
      return false; // it has ended by now
    }
  });
}

const INTERRUPTED: Scenario = {
  name: 'L2/first_start',
  title: 'Ctrl-C interrupts the first start of a stack: no server stays running, and the next start works',
  alone: true,
  noSale: true,
  timeoutMs: LONG_MS,
  async run(context) {
    const stack = stackIn(context, 'first-start');
    const { dir } = stack.paths;
    rememberInstance(stack.paths.instanceFile, { ports: pickFreePorts(listeningPorts()) });
    const name = context.random.pick(SERVER_NAMES);
    const first = stack.start('up');
    const isStarted = (): boolean => readPidFile(stack.paths.pidFile(name)) !== null;
    await context.until(`${name} is started`, isStarted, { everyMs: 5, grantedMs: LONG_MS });
    first.signal('SIGINT');
    const { code, result, error } = resultOf(await first.end);
    const isInterrupted = (): boolean => code === 130 && result === 'failed';
    await context.observed(`a start was interrupted after that of ${name}`, isInterrupted);
    context.faultEnded();
    expectEqual(error, 'Interrupted; stopped everything that was started.', 'what it says');
    expectEqual(await stack.pids(), [...NONE_RUNNING], 'servers that run');
    expectEqual(processesOf(dir), [], 'processes of the folder');

    const next = await stack.run('up');
    expectEqual([next.code, next.result, next.started], [0, 'up', [...SERVER_NAMES]], 'the next start');
    expectEqual((await stack.run('down')).code, 0, 'the end of `stack down`');
    expectEqual(processesOf(dir), [], 'processes of the folder afterwards');
  },
};

/** @returns an api that sends batches in turn, so that a batch is always under way */
async function startAll(context: ScenarioContext): Promise<Program> {
  const env = { BATCH_GATHER_MS: '0' };
  const [api] = await Promise.all([context.start('api', { env }), context.start('worker'), context.start('keeper')]);
  return api;
}

/** kill -9 of every program and every server, all at the same time. */
async function killEverything(context: ScenarioContext): Promise<void> {
  const { stack, programs } = context;
  const servers = SERVER_NAMES.map((name) => stack.servers.server(name));
  const ran = servers.every((server) => server.pid() !== null);
  const [exits] = await Promise.all([
    Promise.all(programs.running.map((program) => program.crash())),
    ...servers.map((server) => server.stop({ signal: 'SIGKILL' })),
  ]);
  await context.observed('every program and every server was killed', () => {
    const gone = servers.every((server) => server.pid() === null);
    return ran && gone && exits.length === 3 && exits.every(({ signal }) => signal === 'SIGKILL');
  });
}

const EVERYTHING: Scenario = {
  name: 'L2',
  title: 'every program and server is killed at once under load and restarts: every open batch ends',
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const [{ saleId }, first] = await Promise.all([context.openSale({ stock: 100_000 }), startAll(context)]);
    let api = first;
    const buyers = context.buyers(saleId, () => [api]);
    const { opLog } = buyers;
    await context.observedInTries('purchases were under way and batches open', KILLS_MAX, async (tries) => {
      const load = { parallel: 48, accepted: random.whole(300, 900), prefix: `load-${tries}` };
      const { unanswered } = await underLoad(context, buyers, load, () => killEverything(context));
      await restoreServers(stack.servers);
      await endOfAof(stack); // our own connections work again
      const open = await pendingCountOf(stack, saleId);
      api = await startAll(context);
      return unanswered > 0 && open > 0;
    });
    context.faultEnded();

    const areAnswered = async (): Promise<boolean> => {
      await buyers.retryUnknown();
      return opLog.count('unknown') === 0;
    };
    await context.until('every purchase has an answer', areAnswered, { everyMs: 1000 });
    const { rows, sold } = await context.expectInvariants(saleId);
    const accepted = opLog.count('ok');
    expectEqual([rows, sold], [accepted, accepted], 'rows, units, and accepted purchases');
  },
};

const portsOf = ({ servers }: StackControls): number[] => claimedPorts(servers.ports).map(({ port }) => port);
const pidsOf = ({ servers }: StackControls): (number | null)[] =>
  SERVER_NAMES.map((name) => servers.server(name).pid());

/** Sells in a second system, from the first request until rest. @returns its orders */
async function sellOnSecondStack(
  context: ScenarioContext,
  second: StackControls,
  users: readonly string[],
): Promise<number> {
  const env = { ...second.env };
  const [api] = await Promise.all([
    context.start('api', { env }),
    context.start('worker', { env }),
    context.start('keeper', { env }),
  ]);
  const { saleId } = await openSale(second, { stock: users.length });
  const buyers = new Buyers(saleId, second.env.JWT_SECRET, () => [api.url]);
  await buyers.rush(users, 8, { tries: 20 });
  const { rows } = await checkSecondStack(second, buyers);
  await buyers.close();
  return rows;
}

const SECOND_STACK: Scenario = {
  name: 'L4',
  title: 'a second stack boots, sells and ends: no row, key or message of the first stack changes',
  alone: true,
  timeoutMs: LONG_MS,
  async run(context) {
    const { stack, random } = context;
    const { keeper, saleId, buyers } = await startSystem(context, { stock: 500 });
    const users = userIds(random.whole(10, 40));
    await buyers.rush(users, 8, { tries: 20 });
    await context.expectInvariants(saleId);
    await context.until('all events are published', async () => (await keeperWorkLeft(stack)) === 0);
    await keeper.stop(); // the keeper would end unpaid orders of earlier scenarios, too
    const [before, pids] = [await fingerprintOf(stack), pidsOf(stack)];
    const polling = buyers.pollStatus(users);

    const second = await bootSecondStack(context, 'beside');
    const taken = new Set(portsOf(stack));
    const shared = portsOf(second).filter((port) => taken.has(port));
    expectEqual(shared, [], 'ports of both');
    const others = userIds(random.whole(40, 80)); // the same names as in the first system
    const sold = await sellOnSecondStack(context, second, others);
    await context.observed(`a second system sold ${sold} units while the first ran`, () => sold === others.length);
    await second.servers.down();
    context.faultEnded();

    await polling.stop();
    expectEqual(await fingerprintOf(stack), before, 'rows, keys and messages of the first');
    expectEqual(pidsOf(stack), pids, 'servers of the first');
    const late = userIds(5, 'late-');
    await buyers.rush(late, 5, { tries: 20 });
    const rows = users.length + late.length;
    await context.until('it sells on', async () => (await rowsOf(stack, saleId)) === rows);
    await context.expectFigures(saleId, { rows, failedRows: 0 }, 'orders of the first');
  },
};

export const LOCAL_STACK_SCENARIOS: readonly Scenario[] = [EVERYTHING, INTERRUPTED, SECOND_STACK];
