import { setTimeout as sleep } from 'node:timers/promises';
import { isStopped } from '../../../deploy/local/stack/processes.js';
import type { ServerName } from '../../../deploy/local/stack/servers/server-spec.js';
import { assertNever } from '../../../src/core/errors.js';
import type { ScenarioContext } from '../context.js';
import type { ProgramName } from '../harness/programs.js';
import { untilRebuilt, bucketStatusOf } from '../harness/redis.js';
import type { ProxiedName, ProxiedServer } from '../harness/tcp-proxy.js';
import { createRandom, type Random } from '../random.js';
import { LIFE_MIN_MS } from '../long/flatness.js';
import type { LastSuccess } from './load.js';
import type { SoakPrograms } from '../long/samples.js';

/** What a soak breaks. `stalled`: SIGSTOP, later SIGCONT; `killed`: kill -9, then started again; `reset`: by the proxy. */
export const FAULT_KINDS = [
  'api_killed',
  'worker_killed',
  'keeper_killed',
  'api_stalled',
  'worker_stalled',
  'keeper_stalled',
  'redis_killed',
  'redis_stalled',
  'redis_reset',
  'scripts_flushed',
  'mysql_killed',
  'mysql_stalled',
  'mysql_reset',
  'broker_killed',
  'broker_reset',
] as const;
type FaultKind = (typeof FAULT_KINDS)[number];

interface Fault {
  readonly kind: FaultKind;
  /** How long a stall lasts, in ms; 0 for everything else. */
  readonly stallMs: number;
}

/** Least and longest stall, in ms: a program stays below the 10 s after which its deliveries go to another. */
const STALLS: Partial<Record<FaultKind, readonly [minMs: number, maxMs: number]>> = {
  api_stalled: [3_000, 8_000],
  worker_stalled: [3_000, 8_000],
  keeper_stalled: [3_000, 8_000],
  redis_stalled: [5_000, 5_000],
  mysql_stalled: [5_000, 10_000],
};

/** Draws random faults, and none a second time before every other one had its turn: a long soak has them all. */
class FaultDraw {
  readonly #random: Random;
  #left: FaultKind[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  /** @param keeperMayDie false: the only keeper must live on, so that its memory can be judged */
  draw({ keeperMayDie }: { readonly keeperMayDie: boolean }): Fault {
    for (;;) {
      if (this.#left.length === 0) this.#left = this.#random.shuffled(FAULT_KINDS);
      const kind = this.#left.pop() as FaultKind;
      if (kind === 'keeper_killed' && !keeperMayDie) continue;
      const [minMs, maxMs] = STALLS[kind] ?? [0, 0];
      return { kind, stallMs: this.#random.whole(minMs, maxMs) };
    }
  }
}

/** What faults break. */
export interface SoakWorld {
  readonly context: ScenarioContext;
  readonly programs: SoakPrograms;
  /** Every program reaches its servers through them. */
  readonly proxies: Readonly<Record<ProxiedName, ProxiedServer>>;
  /** Open sales, which must be rebuilt after a kill of Redis. */
  readonly saleIds: readonly string[];
  readonly signal: AbortSignal;
}

/** Ends a fault; resolves when everything that was broken runs again. */
type Undo = () => Promise<void>;

/**
 * Breaks one thing and waits for the proof that it is broken.
 * @throws when the fault was not observed; Undo throws when what was broken does not come back
 */
function inject(world: SoakWorld, { kind, stallMs }: Fault): Promise<Undo> {
  switch (kind) {
    case 'api_killed':
      return killProgram(world, 'api');
    case 'worker_killed':
      return killProgram(world, 'worker');
    case 'keeper_killed':
      return killProgram(world, 'keeper');
    case 'api_stalled':
      return stallProgram(world, 'api', stallMs);
    case 'worker_stalled':
      return stallProgram(world, 'worker', stallMs);
    case 'keeper_stalled':
      return stallProgram(world, 'keeper', stallMs);
    case 'redis_killed':
      return killRedis(world);
    case 'redis_stalled':
      return stallServer(world, 'redis', stallMs);
    case 'redis_reset':
      return resetConnections(world, 'redis');
    case 'scripts_flushed':
      return flushScripts(world);
    case 'mysql_killed':
      return killServer(world, 'mysql');
    case 'mysql_stalled':
      return stallServer(world, 'mysql', stallMs);
    case 'mysql_reset':
      return resetConnections(world, 'mysql');
    case 'broker_killed':
      return killServer(world, 'proxy');
    case 'broker_reset':
      return resetConnections(world, 'broker');
    default:
      return assertNever(kind);
  }
}

async function killProgram({ context, programs }: SoakWorld, name: ProgramName): Promise<Undo> {
  const victim = await programs.kill(name);
  const { signal } = await victim.exit;
  await context.observed(`${name} ${victim.pid} was killed`, () => !victim.running && signal === 'SIGKILL');
  return () => programs.replace(name);
}

async function stallProgram({ context, programs }: SoakWorld, name: ProgramName, stallMs: number): Promise<Undo> {
  const victim = programs.victim(name);
  victim.signal('SIGSTOP');
  await context.observed(`${name} ${victim.pid} stalled`, () => isStopped(victim.pid));
  return async () => {
    await sleep(stallMs);
    victim.signal('SIGCONT');
    await context.until(`the ${name} goes on`, () => !isStopped(victim.pid));
  };
}

async function stallServer({ context }: SoakWorld, name: ServerName, stallMs: number): Promise<Undo> {
  const server = context.stack.servers.server(name);
  const pid = server.pid();
  server.kill('SIGSTOP');
  await context.observed(`${name} stalled`, () => pid !== null && isStopped(pid));
  return async () => {
    await sleep(stallMs);
    server.kill('SIGCONT');
    await context.until(`${name} goes on`, () => pid !== null && !isStopped(pid));
  };
}

async function killServer({ context, signal }: SoakWorld, name: ServerName): Promise<Undo> {
  const server = context.stack.servers.server(name);
  const pid = server.pid();
  await server.stop({ signal: 'SIGKILL' });
  await context.observed(`${name} was killed`, () => pid !== null && server.pid() === null);
  return async () => {
    signal.throwIfAborted();
    await server.start();
    await server.waitReady();
  };
}

/** Redis may have lost something: every sale is locked and rebuilt under another epoch. */
async function killRedis(world: SoakWorld): Promise<Undo> {
  const { context, saleIds } = world;
  const { stack } = context;
  const epochs = await Promise.all(saleIds.map(async (saleId) => (await bucketStatusOf(stack, saleId)).epoch));
  const start = await killServer(world, 'redis');
  return async () => {
    await start();
    const rebuilt = await Promise.all(saleIds.map((saleId, index) => untilRebuilt(stack, saleId, epochs[index])));
    context.observations.push(`sales were locked and rebuilt: epochs ${rebuilt.join(' ')}`);
  };
}

async function resetConnections({ context, proxies }: SoakWorld, name: ProxiedName): Promise<Undo> {
  const { proxy } = proxies[name];
  const { open, connections } = proxy;
  proxy.reset();
  await context.observed(`connections to ${name} were reset`, () => open > 0 && proxy.connections > connections);
  return () => Promise.resolve();
}

async function flushScripts({ context }: SoakWorld): Promise<Undo> {
  const [redis] = context.stack.redis.masters();
  const commands = [
    ['script', 'flush'],
    ['info', 'memory'],
  ];
  const replies = await redis?.multi(commands).exec();
  const memory = String(replies?.[1]?.[1]);
  await context.observed('Redis had forgotten every script', () => /number_of_cached_scripts:0\r/.test(memory));
  return () => Promise.resolve();
}

/** A fault that is over, as buyers saw it; times in ms. */
export interface FaultReport {
  readonly kind: FaultKind;
  /** Since the soak started. */
  readonly atMs: number;
  readonly stallMs: number;
  /** From its start until a purchase of each open sale, sent after it was observed, was accepted. */
  readonly acceptedMs: number;
  /** From its start until such a purchase was an order. */
  readonly orderedMs: number;
}

/** A soak that is at least so long judges the memory of every program. */
export const JUDGED_FROM_MS = 300_000;
/** What the harness gives a replaced keeper to get ready. */
const RESTART_MS = 60_000;

/**
 * Breaks one thing after the other until `runMs` are over; a fault that needs longer than `everyMs` to heal delays the next.
 * @throws when a fault was not observed, when something did not heal, or when a program ended by itself
 */
export async function breakEvery(
  world: SoakWorld,
  lastSuccess: LastSuccess,
  plan: { readonly runMs: number; readonly everyMs: number; readonly onFault: (fault: FaultReport) => void },
): Promise<void> {
  const { signal } = world;
  const { runMs, everyMs, onFault } = plan;
  const startedMs = Date.now();
  // choices of its own: what buyers draw meanwhile must not change the faults of a seed
  const draw = new FaultDraw(createRandom(`${world.context.seed} faults of a soak`));
  for (;;) {
    const elapsedMs = Date.now() - startedMs;
    const dueMs = everyMs * (Math.floor(elapsedMs / everyMs) + 1);
    if (dueMs >= runMs) break;
    await sleep(dueMs - elapsedMs, undefined, { signal });
    const fault = draw.draw({ keeperMayDie: keeperMayDie(dueMs, runMs) });
    onFault({ ...(await breakOnce(world, lastSuccess, fault)), atMs: dueMs });
    for (const { name, logFile } of world.programs.endedAlone()) {
      throw new Error(`the ${name} ended, and no fault had killed it; its log is ${logFile}`);
    }
  }
  await sleep(Math.max(0, startedMs + runMs - Date.now()), undefined, { signal });
}

/** In the first half only, and early enough for the last keeper to be judged; at any time where nothing is judged. */
const keeperMayDie = (elapsedMs: number, runMs: number): boolean =>
  runMs < JUDGED_FROM_MS || elapsedMs < Math.min(runMs / 2, runMs - LIFE_MIN_MS - RESTART_MS);

async function breakOnce(world: SoakWorld, lastSuccess: LastSuccess, fault: Fault): Promise<Omit<FaultReport, 'atMs'>> {
  const { context, saleIds } = world;
  const startedMs = Date.now();
  const undo = await inject(world, fault);
  const observedMs = Date.now();
  const since = async (what: string, isBack: () => boolean): Promise<number> => {
    await context.until(`${fault.kind}: ${what}`, isBack);
    return Date.now() - startedMs;
  };
  const [acceptedMs, orderedMs] = await Promise.all([
    since('purchases of every sale are accepted again', () => lastSuccess.acceptedSince(observedMs, saleIds)),
    since('they become orders again', () => lastSuccess.orderedSince(observedMs, saleIds)),
    undo(),
  ]);
  context.faultEnded();
  return { ...fault, acceptedMs, orderedMs };
}
