import type { SaleFigures } from '../../invariants/check-sale.js';
import type { ScenarioContext } from '../context.js';
import type { Buyers } from './buyers.js';
import { expectEqual, expectFields, expectOneOf } from './expect.js';
import { sumMetric, type Program } from './programs.js';
import { pendingCountOf } from './sale-state.js';
import type { SaleParts } from './sales.js';
import type { ProxiedServer } from './tcp-proxy.js';

// Sends buyers during a fault, and checks their purchases afterwards.

type Env = Readonly<Record<string, string>>;

/** Environment of all programs, or of a single program. */
interface SystemEnv {
  readonly all?: Env;
  readonly api?: Env;
  readonly worker?: Env;
  readonly keeper?: Env;
}

/** An api, a worker and a keeper of this scenario, an open sale, and buyers who use that api. */
export async function startSystem(
  context: ScenarioContext,
  sale: SaleParts = {},
  { all = {}, ...of }: SystemEnv = {},
): Promise<{
  readonly api: Program;
  readonly worker: Program;
  readonly keeper: Program;
  readonly saleId: string;
  readonly buyers: Buyers;
}> {
  const start = (name: 'api' | 'worker' | 'keeper') => context.start(name, { env: { ...all, ...of[name] } });
  const [api, worker, keeper] = await Promise.all([start('api'), start('worker'), start('keeper')]);
  const { saleId } = await context.openSale(sale);
  return { api, worker, keeper, saleId, buyers: context.buyers(saleId, [api]) };
}

/** Maximum number of kills under load until a kill hits an open batch by chance. */
export const KILLS_MAX = 3;

/**
 * Makes new buyers arrive. Runs `happens` once `accepted` of them were accepted and a batch is open.
 * @param prefix starts their ids; must differ each time
 * @returns how many got no answer
 */
export async function underLoad(
  context: ScenarioContext,
  buyers: Buyers,
  { parallel, accepted, prefix }: { readonly parallel: number; readonly accepted: number; readonly prefix: string },
  happens: () => Promise<void>,
): Promise<{ readonly unanswered: number }> {
  const { opLog, saleId } = buyers;
  const unknownBefore = opLog.count('unknown');
  const load = await buyers.startLoadUntil({ parallel, pauseMs: 5, tries: 1, prefix }, accepted);
  // a moment later the batch may no longer be open
  await context.until('a batch is open', async () => (await pendingCountOf(context.stack, saleId)) > 0);
  await happens();
  await load.stop();
  return { unanswered: opLog.count('unknown') - unknownBefore };
}

/** Retries purchases without an answer. Then each accepted purchase must have exactly one row. */
export async function expectRowPerAccepted(
  context: ScenarioContext,
  buyers: Buyers,
  fields: Partial<SaleFigures> = {},
): Promise<void> {
  await buyers.retryUnknown();
  expectEqual(buyers.opLog.count('unknown'), 0, 'purchases without an answer');
  const figures = await context.expectInvariants(buyers.saleId);
  expectFields(figures, { rows: buyers.opLog.count('ok'), ...fields }, 'a row for each accepted purchase');
}

/** Makes all these buyers send the same key again, and asserts that each has exactly one order. */
export async function expectOneOrderEach(
  context: ScenarioContext,
  buyers: Buyers,
  users: readonly string[],
  api?: Program,
): Promise<void> {
  for (const again of await buyers.rush(users, users.length, { tries: 20, url: api?.url })) {
    expectOneOf(again?.status, [200, 202], 'the answer to the same key');
  }
  const count = buyers.opLog.count('ok');
  const { stock, ...figures } = await context.expectInvariants(buyers.saleId);
  const expected = { rows: count, sold: count, unitsLeft: stock - count, failedRows: 0 };
  expectFields(figures, expected, 'one order each');
}

/** Delay of half messages, as time for events between precheck and deduct. */
export const HALF_MS = 1000;
/** On a slow machine an attempt may time out, and its key is sent again. */
export const TRIES = { tries: 5 };
/** Sends one batch at a time, so that waiting batches have time to fill. */
const ONE_SLOT = { BATCH_IN_FLIGHT_MAX: '1', BATCH_WAIT_MAX_MS: '20000', ROCKETMQ_REQUEST_TIMEOUT_MS: '10000' };

export const batchesInFlight = (apis: readonly Program[]): Promise<number> =>
  sumMetric(apis, 'seckill_batches_in_flight');
export const queuedPurchases = (apis: readonly Program[]): Promise<number> =>
  sumMetric(apis, 'seckill_queue_purchases');

/** Apis that send one batch at a time. Their broker connection can be held back, so that purchases share a batch. */
export class HeldApis {
  readonly apis: readonly Program[];
  readonly #context: ScenarioContext;
  readonly #broker: ProxiedServer;

  private constructor(context: ScenarioContext, apis: readonly Program[], broker: ProxiedServer) {
    this.#context = context;
    this.apis = apis;
    this.#broker = broker;
  }

  static async start(
    context: ScenarioContext,
    count: number,
    env: Readonly<Record<string, string>> = {},
  ): Promise<HeldApis> {
    const broker = await context.proxy('broker');
    const start = () => context.start('api', { env: { ...broker.env, ...ONE_SLOT, ...env } });
    return new HeldApis(context, await Promise.all(Array.from({ length: count }, start)), broker);
  }

  /** Occupies the slot of each api with one buyer. Until `proceed`, all further purchases wait for the next batch. */
  async hold(buyers: Buyers): Promise<void> {
    this.#broker.proxy.stall();
    this.apis.forEach(({ url }, index) => void buyers.buy(`ahead${index}`, { url, ...TRIES }));
    const isHeld = async (): Promise<boolean> => (await batchesInFlight(this.apis)) === this.apis.length;
    await this.#context.until('the slot of each api is taken', isHeld);
  }

  async untilQueued(purchases: number): Promise<void> {
    const isQueued = async (): Promise<boolean> => (await queuedPurchases(this.apis)) === purchases;
    await this.#context.until(`${purchases} purchases are queued`, isQueued);
  }

  /** Lets the first batches pass. @returns when the next batches, whose deduct takes `halfMs`, are at precheck */
  async proceed(halfMs = 0): Promise<void> {
    const { proxy } = this.#broker;
    proxy.requestDelayMs = halfMs;
    proxy.resume();
    const isEmpty = async (): Promise<boolean> => (await queuedPurchases(this.apis)) === 0;
    await this.#context.until('the batches are under way', isEmpty, { everyMs: 10 });
    proxy.requestDelayMs = 0; // time for the steps after the half messages
  }
}
