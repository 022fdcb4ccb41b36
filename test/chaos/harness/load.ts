import type { Arena } from '../context.js';
import type { Buyers } from './buyers.js';
import { type Program, sumMetric } from './programs.js';
import type { ProxiedServer } from './tcp-proxy.js';

/** How often a row may kill under load until something was open: that is a matter of chance. */
export const KILLS_MAX = 3;

export interface Rush {
  readonly parallel: number;
  /** So many of them have heard yes before it happens. */
  readonly accepted: number;
  /** Begins their ids; never the same twice. */
  readonly prefix: string;
}

/** New buyers press until some have heard yes; what happens then happens to those that press at that moment. */
export async function underLoad(
  arena: Arena,
  buyers: Buyers,
  { parallel, accepted, prefix }: Rush,
  happens: () => Promise<void>,
): Promise<{ readonly unheard: number }> {
  const { opLog, saleId } = buyers;
  const [okBefore, unknownBefore] = [opLog.count('ok'), opLog.count('unknown')];
  const load = buyers.startLoad({ parallel, pauseMs: 5, tries: 1, prefix });
  await arena.until('the load is on', () => opLog.count('ok') - okBefore > accepted, 30_000);
  const open = (): Promise<number> => arena.stack.audit.store.pendingCount({ saleId, bucket: 0 });
  await arena.until('a batch is open', async () => (await open()) > 0); // a moment later it may not be any more
  await happens();
  await load.stop();
  return { unheard: opLog.count('unknown') - unknownBefore };
}

/** How long half messages take where something has to happen between precheck and deduct. */
export const HALF_MS = 1000;
/** A slow machine may let a try run out; the same key is asked again then. */
export const TRIES = { tries: 5 };
/** One batch at a time, and time for those behind it. */
const ONE_SLOT = { BATCH_IN_FLIGHT_MAX: '1', BATCH_WAIT_MAX_MS: '20000', ROCKETMQ_REQUEST_TIMEOUT_MS: '10000' };

export const onTheWay = (apis: readonly Program[]): Promise<number> => sumMetric(apis, 'seckill_batches_in_flight');
export const inQueue = (apis: readonly Program[]): Promise<number> => sumMetric(apis, 'seckill_queue_purchases');

/** Apis that send one batch at a time; the way to the broker can be held, so that a crowd meets in one batch. */
export class HeldApis {
  readonly apis: readonly Program[];
  readonly #arena: Arena;
  readonly #broker: ProxiedServer;

  private constructor(arena: Arena, apis: readonly Program[], broker: ProxiedServer) {
    this.#arena = arena;
    this.apis = apis;
    this.#broker = broker;
  }

  static async start(arena: Arena, count: number, env: Readonly<Record<string, string>> = {}): Promise<HeldApis> {
    const broker = await arena.proxy('broker');
    const start = () => arena.start('api', { env: { ...broker.env, ...ONE_SLOT, ...env } });
    return new HeldApis(arena, await Promise.all(Array.from({ length: count }, start)), broker);
  }

  /** Sends one buyer ahead to each api: until `letGo` everybody who comes waits for the next batch. */
  async hold(buyers: Buyers): Promise<void> {
    this.#broker.proxy.fallSilent();
    this.apis.forEach(({ url }, index) => void buyers.buy(`ahead${index}`, { url, ...TRIES }));
    await this.#arena.until('a slot is taken at each', async () => (await onTheWay(this.apis)) === this.apis.length);
  }

  async untilWaiting(purchases: number): Promise<void> {
    await this.#arena.until(`${purchases} wait`, async () => (await inQueue(this.apis)) === purchases);
  }

  /** Lets those ahead pass. @returns when the next batches are at precheck; their deduct comes `halfMs` later */
  async letGo(halfMs = 0): Promise<void> {
    this.#broker.proxy.requestDelayMs = halfMs;
    this.#broker.proxy.speak();
    await this.#arena.until('the batches are on their way', async () => (await inQueue(this.apis)) === 0, 20_000, 10);
    this.#broker.proxy.requestDelayMs = 0; // of what comes behind the half messages
  }
}

/**
 * For faults that are a matter of chance, as who is asked first: causes one again until it happens.
 * @param attempt hears its number, from 1; says whether the fault happened
 */
export async function biteInTries(
  arena: Arena,
  what: string,
  triesMax: number,
  attempt: (number: number) => Promise<boolean>,
): Promise<void> {
  let tries = 0;
  let happened = false;
  while (!happened && tries < triesMax) happened = await attempt(++tries);
  await arena.bite(tries === 1 ? what : `${what}, at try ${tries}`, () => happened, 0);
}
