import { setTimeout as sleep } from 'node:timers/promises';
import { isStopped } from '../../../deploy/local/stack/processes.js';
import type { ServerName } from '../../../deploy/local/stack/servers/server-spec.js';
import { assertNever } from '../../../src/core/errors.js';
import type { Arena } from '../context.js';
import type { ProgramName } from '../harness/programs.js';
import { repaired, standingOf } from '../harness/redis.js';
import type { ProxiedName, ProxiedServer } from '../harness/tcp-proxy.js';
import { createRandom, type Random } from '../random.js';
import { LIFE_MIN_MS } from './flatness.js';
import type { Pulse } from './load.js';
import type { Fleet } from './samples.js';

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
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
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

/** Draws faults by chance, and none a second time before every other one had its turn: a long soak has them all. */
export class FaultBag {
  readonly #random: Random;
  #left: FaultKind[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  /** @param keeperMayDie false: the one keeper there is must live on, so that its memory can be watched */
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

/** What faults reach into. */
export interface Breakable {
  readonly arena: Arena;
  readonly fleet: Fleet;
  /** Every program speaks to its servers through them. */
  readonly proxies: Readonly<Record<ProxiedName, ProxiedServer>>;
  /** Open sales, which Redis must have rebuilt after it was killed. */
  readonly saleIds: readonly string[];
  readonly signal: AbortSignal;
}

/** Undoes a fault; resolves when everything that was broken runs again. */
export type Undo = () => Promise<void>;

/**
 * Breaks one thing and waits for the proof that it is broken.
 * @throws when the fault did not bite; Undo throws when what was broken does not come back
 */
export function breakThings(world: Breakable, { kind, stallMs }: Fault): Promise<Undo> {
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
      return killServer(world, 'mariadb');
    case 'mysql_stalled':
      return stallServer(world, 'mariadb', stallMs);
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

async function killProgram({ arena, fleet }: Breakable, name: ProgramName): Promise<Undo> {
  const victim = await fleet.kill(name);
  const { signal } = await victim.exit;
  await arena.bite(`${name} ${victim.pid} was killed`, () => !victim.running && signal === 'SIGKILL');
  return () => fleet.replace(name);
}

async function stallProgram({ arena, fleet }: Breakable, name: ProgramName, stallMs: number): Promise<Undo> {
  const victim = fleet.victim(name);
  victim.signal('SIGSTOP');
  await arena.bite(`${name} ${victim.pid} stood still`, () => isStopped(victim.pid));
  return async () => {
    await sleep(stallMs);
    victim.signal('SIGCONT');
    await arena.until(`the ${name} goes on`, () => !isStopped(victim.pid));
  };
}

async function stallServer({ arena }: Breakable, name: ServerName, stallMs: number): Promise<Undo> {
  const server = arena.stack.servers.server(name);
  const pid = server.pid();
  server.kill('SIGSTOP');
  await arena.bite(`${name} stood still`, () => pid !== null && isStopped(pid));
  return async () => {
    await sleep(stallMs);
    server.kill('SIGCONT');
    await arena.until(`${name} goes on`, () => pid !== null && !isStopped(pid));
  };
}

async function killServer({ arena, signal }: Breakable, name: ServerName): Promise<Undo> {
  const server = arena.stack.servers.server(name);
  const pid = server.pid();
  await server.stop({ signal: 'SIGKILL' });
  await arena.bite(`${name} was killed`, () => pid !== null && server.pid() === null);
  return async () => {
    signal.throwIfAborted();
    await server.start();
    await server.waitReady();
  };
}

/** Nobody can tell that nothing is lost: every sale is shut and rebuilt under another epoch. */
async function killRedis(world: Breakable): Promise<Undo> {
  const { arena, saleIds } = world;
  const epochOf = async (saleId: string): Promise<number> => (await standingOf(arena.stack, saleId)).epoch;
  const epochs = await Promise.all(saleIds.map(epochOf));
  const start = await killServer(world, 'redis');
  return async () => {
    await start();
    const rebuilt = await Promise.all(saleIds.map((saleId, index) => repaired(arena.stack, saleId, epochs[index])));
    arena.bites.push(`sales were shut and rebuilt: epochs ${rebuilt.join(' ')}`);
  };
}

async function resetConnections({ arena, proxies }: Breakable, name: ProxiedName): Promise<Undo> {
  const { proxy } = proxies[name];
  const { open, connections } = proxy;
  proxy.reset();
  await arena.bite(`connections to ${name} were reset`, () => open > 0 && proxy.connections > connections);
  return () => Promise.resolve();
}

async function flushScripts({ arena }: Breakable): Promise<Undo> {
  const [redis] = arena.stack.redis.masters();
  const replies = await redis
    ?.multi([
      ['script', 'flush'],
      ['info', 'memory'],
    ])
    .exec();
  const memory = String(replies?.[1]?.[1]);
  await arena.bite('Redis had forgotten every script', () => /number_of_cached_scripts:0\r/.test(memory));
  return () => Promise.resolve();
}

/** A fault that is over, as buyers saw it; times in ms. */
export interface FaultTold {
  readonly kind: FaultKind;
  /** Since the soak began. */
  readonly atMs: number;
  readonly stallMs: number;
  /** From its begin until a purchase of each open sale, sent after it bit, was accepted. */
  readonly yesMs: number;
  /** From its begin until such a purchase was an order. */
  readonly ordersMs: number;
}

export interface FaultLoopParts {
  readonly world: Breakable;
  readonly pulse: Pulse;
  readonly runMs: number;
  readonly everyMs: number;
  readonly onFault: (told: FaultTold) => void;
}

/** A soak that is at least so long judges the memory of every program. */
export const JUDGED_FROM_MS = 300_000;
/** What the harness gives its successor to get ready. */
const RESTART_MS = 60_000;
/** A broker needs up to half a minute to start, and everything 30 s to heal; the rest is a shared machine. */
const HEAL_MAX_MS = 90_000;

/**
 * Breaks one thing after the other until `runMs` are over; who needs longer than `everyMs` to heal gets his time.
 * @throws when a fault did not bite, when something did not heal, or when a program ended by itself
 */
export async function breakEvery(parts: FaultLoopParts): Promise<void> {
  const { world, runMs, everyMs, onFault } = parts;
  const { signal } = world;
  const beganMs = Date.now();
  // a row of choices of its own: what the crowd draws meanwhile must not change the faults of a seed
  const bag = new FaultBag(createRandom(`${world.arena.seed} faults of a soak`));
  for (;;) {
    const elapsedMs = Date.now() - beganMs;
    const dueMs = everyMs * (Math.floor(elapsedMs / everyMs) + 1);
    if (dueMs >= runMs) break;
    await sleep(dueMs - elapsedMs, undefined, { signal });
    const fault = bag.draw({ keeperMayDie: keeperMayDie(dueMs, runMs) });
    onFault({ ...(await breakOnce(parts, fault)), atMs: dueMs });
    for (const { name, logFile } of world.fleet.endedAlone()) {
      throw new Error(`the ${name} ended, and no fault had killed it; its log is ${logFile}`);
    }
  }
  await sleep(Math.max(0, beganMs + runMs - Date.now()), undefined, { signal });
}

/** In the first half only, and early enough for the last keeper to be judged; where nobody is judged, at any time. */
export const keeperMayDie = (elapsedMs: number, runMs: number): boolean =>
  runMs < JUDGED_FROM_MS || elapsedMs < Math.min(runMs / 2, runMs - LIFE_MIN_MS - RESTART_MS);

async function breakOnce({ world, pulse }: FaultLoopParts, fault: Fault): Promise<Omit<FaultTold, 'atMs'>> {
  const { arena, saleIds } = world;
  const beganMs = Date.now();
  const undo = await breakThings(world, fault);
  const bitMs = Date.now();
  const since = async (what: string, isBack: () => boolean): Promise<number> => {
    await arena.until(`${fault.kind}: ${what}`, isBack, HEAL_MAX_MS);
    return Date.now() - beganMs;
  };
  const [yesMs, ordersMs] = await Promise.all([
    since('buyers of every sale hear yes again', () => pulse.yesSince(bitMs, saleIds)),
    since('their purchases become orders again', () => pulse.ordersSince(bitMs, saleIds)),
    undo(),
  ]);
  arena.faultEnded();
  return { ...fault, yesMs, ordersMs };
}
