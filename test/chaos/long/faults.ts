import { setTimeout as sleep } from 'node:timers/promises';
import { isStopped } from '../../../deploy/local/stack/processes.js';
import type { ServerName } from '../../../deploy/local/stack/servers/server-spec.js';
import { createRepairStore } from '../../../src/redis/repair-store.js';
import type { ProgramName } from '../harness/programs.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { ProxiedName, ProxiedServer } from '../harness/tcp-proxy.js';
import { until } from '../harness/wait.js';
import type { Random } from '../random.js';
import type { Buyers } from './buyers.js';
import type { LongPrograms } from './samples.js';

/** Programs and servers that are killed with kill -9 and started again. */
export const KILLS = [
  'api_killed',
  'worker_killed',
  'keeper_killed',
  'redis_killed',
  'mysql_killed',
  'broker_killed',
] as const;
/** `stalled`: SIGSTOP, later SIGCONT. `reset`: the proxy in front of the server resets its connections. */
export const FAULT_KINDS = [
  ...KILLS,
  'api_stalled',
  'worker_stalled',
  'keeper_stalled',
  'redis_stalled',
  'mysql_stalled',
  'redis_reset',
  'mysql_reset',
  'broker_reset',
  'scripts_flushed',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** Length of a stall in ms, 0 for other faults. */
  readonly stallMs: number;
}

/** Shortest and longest stall, in ms. A program stalls for less than the 10 s after which its deliveries move on. */
const STALLS: Partial<Record<FaultKind, readonly [minMs: number, maxMs: number]>> = {
  api_stalled: [3_000, 8_000],
  worker_stalled: [3_000, 8_000],
  keeper_stalled: [3_000, 8_000],
  redis_stalled: [5_000, 5_000],
  mysql_stalled: [5_000, 10_000],
};
/** The keeper is killed until this share of the run, so that the last keeper lives long enough to judge its memory. */
const KEEPER_UNTIL = 0.4;

/** Draws random faults. No kind occurs a second time before every other kind has occurred. */
export class FaultDraw {
  readonly #random: Random;
  readonly #kinds: readonly FaultKind[];
  readonly #step: number;
  #left: FaultKind[] = [];

  /** @param step distance between two faults, as a share of the run */
  constructor(random: Random, kinds: readonly FaultKind[], step: number) {
    this.#random = random;
    this.#kinds = kinds;
    this.#step = step;
  }

  /** @param share of the run at which the fault comes */
  draw(share: number): Fault {
    const allowed = (kind: FaultKind): boolean => kind !== 'keeper_killed' || share <= KEEPER_UNTIL;
    if (!this.#left.some(allowed)) this.#left = this.#random.shuffled(this.#kinds);
    const isLastChance = share <= KEEPER_UNTIL && share + this.#step > KEEPER_UNTIL;
    const keeper = isLastChance ? this.#left.find((kind) => kind === 'keeper_killed') : undefined;
    const kind = keeper ?? (this.#left.find(allowed) as FaultKind);
    this.#left = this.#left.filter((one) => one !== kind);
    const [minMs, maxMs] = STALLS[kind] ?? [0, 0];
    return { kind, stallMs: this.#random.whole(minMs, maxMs) };
  }
}

/** The things that faults break, and a buyer who notices when a fault is over. */
export interface FaultWorld {
  readonly stack: StackControls;
  readonly programs: LongPrograms;
  readonly buyers: Buyers;
  /** Empty if the programs reach their servers directly. */
  readonly proxies: Partial<Readonly<Record<ProxiedName, ProxiedServer>>>;
  /** Buys in the sale that stays open, because other buyers may be between two sales. */
  readonly probe: Probe;
  readonly signal: AbortSignal;
}

/** Makes one purchase at a time. */
export interface Probe {
  /** Returns the name of a new buyer, or null if the purchase was not accepted. */
  buy(): Promise<string | null>;
  isOrdered(buyer: string): Promise<boolean>;
}

/** A fault that is over, as buyers experienced it. Times are in ms. */
export interface FaultReport extends Fault {
  /** Since the run began. */
  readonly atMs: number;
  /** Time from the start of the fault until a purchase was accepted that was sent after the proof. */
  readonly acceptedMs: number;
  /** Time from the start of the fault until this purchase was an order. */
  readonly orderedMs: number;
  /** Open sales after a kill of Redis, and the time until all were rebuilt. Null after other faults. */
  readonly rebuilt: { readonly sales: number; readonly ms: number } | null;
}

/** The keeper may have to rebuild every open sale while the machine sells. */
const HEAL_MAX_MS = 180_000;
const HEAL_EVERY_MS = 250;

/** Ends a fault. Resolves once everything runs again. */
type Undo = () => Promise<void>;

/**
 * Causes a fault, waits for its proof, ends the fault and waits until buyers are served.
 * @throws if the fault was not observed or does not heal
 */
export async function breakOnce(world: FaultWorld, fault: Fault): Promise<Omit<FaultReport, 'atMs'>> {
  const { buyers, stack, signal, probe } = world;
  const startedMs = performance.now();
  const undo = await inject(world, fault);
  const observedMs = Date.now();
  const healed = async (what: string, isBack: () => boolean | Promise<boolean>): Promise<number> => {
    await until(`${fault.kind}: ${what}`, () => signal.aborted || isBack(), {
      everyMs: HEAL_EVERY_MS,
      grantedMs: HEAL_MAX_MS,
    });
    signal.throwIfAborted();
    return Math.round(performance.now() - startedMs);
  };
  let buyer: string | null = null;
  let rebuilt: FaultReport['rebuilt'] = null;
  const [acceptedMs, orderedMs] = await Promise.all([
    healed('purchases are accepted again', async () => {
      if (buyers.stats.lastAcceptedSentMs > observedMs) return true;
      buyer ??= await probe.buy();
      return buyer !== null;
    }),
    healed('they become orders again', async () => {
      if (buyers.stats.lastOrderedSentMs > observedMs) return true;
      return buyer !== null && (await probe.isOrdered(buyer));
    }),
    undo().then(async () => {
      if (fault.kind !== 'redis_killed') return;
      const open = await openSales(stack);
      const ms = await healed('every open sale is rebuilt', async () => (await toRebuild(stack, open)) === 0);
      rebuilt = { sales: open.length, ms };
    }),
  ]);
  return { ...fault, acceptedMs, orderedMs, rebuilt };
}

const PROGRAM_NAMES: Partial<Record<string, ProgramName>> = { api: 'api', worker: 'worker', keeper: 'keeper' };
const SERVERS: Partial<Record<string, ServerName>> = { redis: 'redis', mysql: 'mysql', broker: 'proxy' };

/** @throws if the fault was not observed */
async function inject(world: FaultWorld, { kind, stallMs }: Fault): Promise<Undo> {
  if (kind === 'scripts_flushed') return flushScripts(world);
  const [target = '', how] = kind.split('_');
  const program = PROGRAM_NAMES[target];
  const server = SERVERS[target];
  if (how === 'reset') return resetConnections(world, target as ProxiedName);
  if (program !== undefined) {
    return how === 'killed' ? killProgram(world, program) : stallProgram(world, program, stallMs);
  }
  if (server === undefined) throw new Error(`nothing breaks ${target}`);
  return how === 'killed' ? killServer(world, server) : stallServer(world, server, stallMs);
}

const observed = (what: string, proof: () => boolean): Promise<void> => until(`the fault is observed: ${what}`, proof);

async function killProgram({ programs, buyers }: FaultWorld, name: ProgramName): Promise<Undo> {
  const victim = await programs.kill(name);
  const { signal } = await victim.exit;
  if (signal !== 'SIGKILL') throw new Error(`the ${name} was to be killed, and ended with ${signal}`);
  useApis(buyers, programs);
  return async () => {
    await programs.replace(name);
    useApis(buyers, programs);
  };
}

async function stallProgram({ programs }: FaultWorld, name: ProgramName, stallMs: number): Promise<Undo> {
  const victim = programs.victim(name);
  victim.signal('SIGSTOP');
  await observed(`${name} ${victim.pid} stalled`, () => isStopped(victim.pid));
  return async () => {
    await sleep(stallMs);
    victim.signal('SIGCONT');
    await until(`the ${name} runs again`, () => !isStopped(victim.pid));
  };
}

async function killServer({ stack, signal }: FaultWorld, name: ServerName): Promise<Undo> {
  const server = stack.servers.server(name);
  await server.stop({ signal: 'SIGKILL' });
  await observed(`${name} was killed`, () => server.pid() === null);
  return async () => {
    signal.throwIfAborted();
    await server.start();
    await server.waitReady();
  };
}

async function stallServer({ stack }: FaultWorld, name: ServerName, stallMs: number): Promise<Undo> {
  const server = stack.servers.server(name);
  const pid = server.pid() ?? 0;
  server.kill('SIGSTOP');
  await observed(`${name} stalled`, () => pid !== 0 && isStopped(pid));
  return async () => {
    await sleep(stallMs);
    server.kill('SIGCONT');
    await until(`${name} runs again`, () => !isStopped(pid));
  };
}

async function resetConnections({ proxies }: FaultWorld, name: ProxiedName): Promise<Undo> {
  const proxy = proxies[name]?.proxy;
  if (proxy === undefined) throw new Error(`there is no proxy before ${name}`);
  const { open, connections } = proxy;
  proxy.reset();
  await observed(`connections to ${name} were reset`, () => open > 0 && proxy.connections > connections);
  return () => Promise.resolve();
}

async function flushScripts({ stack }: FaultWorld): Promise<Undo> {
  const [redis] = stack.redis.masters();
  const commands = [
    ['script', 'flush'],
    ['info', 'memory'],
  ];
  const replies = await redis?.multi(commands).exec();
  const memory = String(replies?.[1]?.[1]);
  await observed('Redis had forgotten every script', () => /number_of_cached_scripts:0\r/.test(memory));
  return () => Promise.resolve();
}

/** Tells buyers which apis run, like a load balancer that has noticed. */
export function useApis(buyers: Buyers, programs: LongPrograms): void {
  buyers.useApis(programs.apis().map(({ url }) => Number(new URL(url).port)));
}

interface OpenSale {
  readonly saleId: string;
  readonly buckets: number;
}

async function openSales({ mysql }: StackControls): Promise<OpenSale[]> {
  const rows = await mysql.query<{ id: string; buckets: number }>(
    "SELECT id, buckets FROM sales WHERE state IN ('warm', 'open', 'paused')",
  );
  return rows.map(({ id, buckets }) => ({ saleId: String(id), buckets }));
}

/** Counts the sales that Redis still locks or does not trust. A sale that closed in the meantime needs no rebuild. */
async function toRebuild({ redis, mysql }: StackControls, sales: readonly OpenSale[]): Promise<number> {
  const refs = sales.flatMap(({ saleId, buckets }) =>
    Array.from({ length: buckets }, (_, bucket) => ({ saleId, bucket })),
  );
  const found = await createRepairStore(redis).statusOf(refs);
  const waiting = new Set(
    refs
      .filter((_, place) => {
        const status = found[place];
        return status === undefined || status.state === null || status.state === 'repair' || !status.sameServer;
      })
      .map(({ saleId }) => saleId),
  );
  if (waiting.size === 0) return 0;
  const closed = await mysql.query<{ id: string }>("SELECT id FROM sales WHERE state = 'closed' AND id IN (?)", [
    [...waiting],
  ]);
  return waiting.size - closed.length;
}
