import type { ServerName } from '../../../deploy/local/stack/servers/server-spec.js';
import { assertNever } from '../../../src/core/errors.js';
import { createRepairStore } from '../../../src/redis/repair-store.js';
import type { ProgramName } from '../harness/programs.js';
import type { StackControls } from '../harness/stack-controls.js';
import { until } from '../harness/wait.js';
import type { SoakPrograms } from './samples.js';
import type { YearLoad } from './buyers.js';
import type { YearFaultKind } from './plan.js';

/** What faults break. */
export interface YearWorld {
  readonly stack: StackControls;
  readonly programs: SoakPrograms;
  readonly load: YearLoad;
  /** Buyers of the sale that is open all year: they come also when the others are between two sales. */
  readonly probe: Probe;
  readonly signal: AbortSignal;
}

/** One purchase at a time, in a sale that is always open. */
export interface Probe {
  /** A new buyer asks once. @returns their name, or null when they were not accepted */
  buy(): Promise<string | null>;
  isOrdered(buyer: string): Promise<boolean>;
}

/** A fault that is over, as buyers saw it; times in ms. */
export interface YearFault {
  readonly kind: YearFaultKind;
  /** Since the year began. */
  readonly atMs: number;
  /** From the kill until a purchase was accepted, and until one had become an order, that was sent after it. */
  readonly acceptedMs: number;
  readonly orderedMs: number;
  /** Open sales that were rebuilt, and from the kill until the last one was; null where nothing was to be rebuilt. */
  readonly rebuilt: { readonly sales: number; readonly ms: number } | null;
}

/** Every sale that is open may have to be rebuilt, on a machine that sells meanwhile. */
const HEAL_MAX_MS = 180_000;
const HEAL_EVERY_MS = 250;

/** Kills one thing, starts it again and waits until buyers are served. @throws when that does not come */
export async function breakOnce(world: YearWorld, kind: YearFaultKind): Promise<Omit<YearFault, 'atMs'>> {
  const { load, stack, signal } = world;
  const startedMs = performance.now();
  const since = (): number => Math.round(performance.now() - startedMs);
  const start = await kill(world, kind);
  const killedMs = Date.now();
  const healed = async (what: string, isBack: () => boolean | Promise<boolean>): Promise<number> => {
    await until(`${kind}: ${what}`, () => signal.aborted || isBack(), {
      everyMs: HEAL_EVERY_MS,
      grantedMs: HEAL_MAX_MS,
    });
    signal.throwIfAborted();
    return since();
  };
  let startedAgain = false;
  let buyer: string | null = null;
  let rebuilt: YearFault['rebuilt'] = null;
  const [acceptedMs, orderedMs] = await Promise.all([
    healed('purchases are accepted again', async () => {
      if (load.stats.lastAcceptedSentMs > killedMs) return true;
      buyer ??= await world.probe.buy();
      return buyer !== null;
    }),
    healed('they become orders again', async () => {
      if (load.stats.lastOrderedSentMs > killedMs) return true;
      return buyer !== null && (await world.probe.isOrdered(buyer));
    }),
    start().then(() => (startedAgain = true)),
    kind === 'redis_killed'
      ? (async () => {
          await until('Redis runs again', () => signal.aborted || startedAgain, { grantedMs: HEAL_MAX_MS });
          const open = await openSales(stack);
          const ms = await healed('every open sale is rebuilt', async () => (await toRebuild(stack, open)) === 0);
          rebuilt = { sales: open.length, ms };
        })()
      : null,
  ]);
  return { kind, acceptedMs, orderedMs, rebuilt };
}

function kill(world: YearWorld, kind: YearFaultKind): Promise<() => Promise<void>> {
  switch (kind) {
    case 'api_killed':
      return killProgram(world, 'api');
    case 'worker_killed':
      return killProgram(world, 'worker');
    case 'keeper_killed':
      return killProgram(world, 'keeper');
    case 'redis_killed':
      return killServer(world, 'redis');
    case 'mysql_killed':
      return killServer(world, 'mysql');
    case 'broker_killed':
      return killServer(world, 'proxy');
    default:
      return assertNever(kind);
  }
}

async function killProgram({ programs, load }: YearWorld, name: ProgramName): Promise<() => Promise<void>> {
  const victim = await programs.kill(name);
  const { signal } = await victim.exit;
  if (signal !== 'SIGKILL') throw new Error(`the ${name} was to be killed, and ended with ${signal}`);
  useApis(load, programs);
  return async () => {
    await programs.replace(name);
    useApis(load, programs);
  };
}

async function killServer({ stack, signal }: YearWorld, name: ServerName): Promise<() => Promise<void>> {
  const server = stack.servers.server(name);
  await server.stop({ signal: 'SIGKILL' });
  await until(`${name} was killed`, () => server.pid() === null);
  return async () => {
    signal.throwIfAborted();
    await server.start();
    await server.waitReady();
  };
}

/** As a load balancer that has noticed. */
export function useApis(load: YearLoad, programs: SoakPrograms): void {
  load.useApis(programs.apis().map(({ url }) => Number(new URL(url).port)));
}

interface OpenSale {
  readonly saleId: string;
  readonly buckets: number;
}

const openSales = async ({ mysql }: StackControls): Promise<OpenSale[]> => {
  const rows = await mysql.query<{ id: string; buckets: number }>(
    "SELECT id, buckets FROM sales WHERE state IN ('warm', 'open', 'paused')",
  );
  return rows.map(({ id, buckets }) => ({ saleId: String(id), buckets }));
};

/** Of these sales, those that Redis still locks or does not trust; one that has been closed meanwhile is none. */
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
