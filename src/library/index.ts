import { pause } from '../core/after.js';
import { loadConfig, removedSettings, withSettings, type Environment } from '../core/config/load.js';
import { PROGRAM_SECTIONS, type Config } from '../core/config/schema.js';
import type { ShownOrder } from '../core/order.js';
import type { Log } from '../core/ports/log.js';
import { authenticatorOf } from '../http/auth.js';
import type { Middleware } from '../http/app.js';
import { Pages } from '../http/pages.js';
import type { ReadyReport } from '../http/services.js';
import { createRevocationRepository } from '../mysql/revocation-repository.js';
import { openServices } from '../programs/api-services.js';
import { openIdentity, type Identity, type IdentityParts } from '../programs/identity.js';
import { openKeeper } from '../programs/keeper.js';
import type { OpenProgram } from '../programs/run-program.js';
import { systemClock as clock } from '../process/system-clock.js';
import { createLog } from '../process/telemetry.js';
import { openWorker } from '../programs/worker.js';
import { listenToOrders } from './hooks.js';
import type { KeeperOptions, SeckillOptions, WorkerOptions } from './options.js';
import { paymentsOf } from './payments.js';
import { createRouter } from './router.js';
import { assertKnown } from './settings.js';

export type {
  ChargeOutcome,
  FoundCharge,
  PaymentClaims,
  PaymentProvider,
  PaymentReport,
  Payments,
  PaymentWebhook,
  Price,
  RefundOutcome,
  RefundPart,
} from '../core/ports/payment-provider.js';
export type { Payment } from '../core/ports/order-transitions.js';
export { ConfigError, type Environment } from '../core/config/load.js';
export { OperationalError } from '../core/errors.js';
export type { MetadataByOrder, OrderEvent, OrderEventType } from '../core/order-event.js';
export type { Caller } from '../http/auth.js';
export type { Hooks, KeeperOptions, OrderHook, SeckillOptions, WorkerOptions } from './options.js';
export type { Settings } from './settings.js';
export type { Log, Middleware, ReadyReport, ShownOrder };

/** A part of Seckill that runs in this process. */
export interface Running {
  /** Asks each server that this part needs, and returns whether this part can do its work. */
  ready(): Promise<ReadyReport>;
  /** Returns the metrics in the text format of Prometheus. */
  metrics(): Promise<string>;
  /** Finishes the work under way, within its own time limits. Safe to call twice. Never rejects. */
  close(): Promise<void>;
}

export interface Seckill extends Running {
  /**
   * The buyers' HTTP API for an Express app, at the paths of docs/api.md: `app.use(seckill.router)`, or below a path.
   * Passes other paths on. Put it before body parsers, because signed sales and the payment webhook need the raw body.
   */
  readonly router: Middleware;
  /** Starts a worker with the same options. At least one is needed, here or elsewhere. @throws OperationalError */
  startWorker(): Promise<Running>;
  /** Starts a keeper, which runs the background jobs, in the same way. Two are enough for all processes together. */
  startKeeper(): Promise<Running>;
  /** Finds an order of any buyer, for use in hooks. Null if it does not exist. @throws OperationalError mysql */
  findOrder(orderId: string): Promise<ShownOrder | null>;
  /** Also closes the parts that it started. Stop your server first, because later requests are answered with 503. */
  close(): Promise<void>;
}

/**
 * Creates the buyers' API and hooks inside an app. Listens on no port, handles no signal and never ends the process.
 * @throws ConfigError with every wrong setting; OperationalError if a server does not answer. Nothing stays open
 */
export async function createSeckill(options: SeckillOptions = {}): Promise<Seckill> {
  const { authenticate, hooks } = options;
  const env = environmentOf(options);
  const config: Config<Section> & Partial<Config<'auth'>> =
    authenticate === undefined ? loadConfig(WITH_TOKENS, env) : loadConfig(SECTIONS, env);
  const log = logOf(options, env);
  const fail = bugsOf(options, 'router', log);
  const api = await openServices(config, {
    log,
    fail,
    openIdentity: (parts) =>
      authenticate === undefined
        ? openIdentity(config as Config<'auth'>, parts)
        : Promise.resolve(identityOf(authenticate, parts)),
    openPayments: () => paymentsOf(options, config.payment, log),
    cors: null, // the app decides which origins may call it
    pages: { buyers: Pages.none(), operators: Pages.none() },
  });
  const router = createRouter(api);
  const { messages, registry } = api;
  const hooked = hooks === undefined ? NOTHING_TO_STOP : listenToOrders(config, hooks, { messages, registry, log });
  const stopHooks = await hooked.catch(async (error: unknown) => {
    await api.close();
    throw error;
  });
  const started: Promise<Running>[] = [];
  let isClosed = false;
  const start = (part: () => Promise<Running>): Promise<Running> => {
    if (isClosed) return Promise.reject(new Error('this Seckill is closed; create a new one'));
    const running = part();
    started.push(running);
    return running;
  };
  // Waits for a part that is still starting. If its start fails, it has nothing open.
  const closeStarted = (running: Promise<Running>): Promise<void> =>
    running.then(
      (part) => part.close(),
      () => undefined,
    );
  return {
    router: router.middleware,
    startWorker: () => start(() => startWorker(options)),
    startKeeper: () => start(() => startKeeper(options)),
    findOrder: api.services.findOrder,
    ready: api.services.ready,
    metrics: () => api.services.metricsPage.read(),
    close: once(async () => {
      isClosed = true;
      await router.drain(config.http.drainMs);
      await Promise.all([stopHooks(), ...started.map(closeStarted)]);
      await api.close();
    }, log),
  };
}

/** Starts only a worker, which writes accepted purchases as orders. @throws ConfigError, OperationalError */
export async function startWorker(options: WorkerOptions = {}): Promise<Running> {
  const env = environmentOf(options);
  const config = loadConfig(PROGRAM_SECTIONS.worker, env);
  const log = logOf(options, env);
  const report = bugsOf(options, 'worker', log);
  let running: Running | null = null;
  const fail = (error: unknown): void => {
    report(error);
    void running?.close(); // it receives no more messages, so other workers take them over
  };
  running = runningOf(await openWorker(config, log, fail), log);
  return running;
}

/** Starts only a keeper, which runs the background jobs. @throws ConfigError, OperationalError */
export async function startKeeper(options: KeeperOptions = {}): Promise<Running> {
  const env = environmentOf(options);
  const config = loadConfig(PROGRAM_SECTIONS.keeper, env);
  const log = logOf(options, env);
  const payments = () => paymentsOf(options, config.payment, log);
  return runningOf(await openKeeper(config, log, payments), log);
}

type Section = Exclude<(typeof PROGRAM_SECTIONS)['api'][number], 'auth' | 'shop'>;
/** All but the shop, whose pages the library does not serve. */
const SECTIONS = PROGRAM_SECTIONS.api.filter((name): name is Section => name !== 'auth' && name !== 'shop');
const WITH_TOKENS = [...SECTIONS, 'auth' as const];

const NOTHING_TO_STOP = Promise.resolve(() => Promise.resolve());

function environmentOf({ settings = {}, env }: KeeperOptions): Environment {
  assertKnown(settings);
  return withSettings({ ...settings }, env);
}

function logOf(options: KeeperOptions, env: Environment): Log {
  const log = options.log ?? createLog('seckill', loadConfig(['log'], env).log.level);
  for (const sentence of removedSettings(env)) log.warn({}, sentence);
  return log;
}

const bugsOf =
  ({ onBug }: WorkerOptions, part: 'router' | 'worker', log: Log) =>
  (error: unknown): void => {
    log.error({ err: error, part }, 'a bug');
    onBug?.(error, part);
  };

const identityOf = (
  authenticate: NonNullable<SeckillOptions['authenticate']>,
  { mysql, log }: IdentityParts,
): Identity => ({
  auth: authenticatorOf(authenticate, { clock, log }),
  revocations: createRevocationRepository(mysql),
  issuers: [],
  close: () => Promise.resolve(),
});

const runningOf = (program: OpenProgram, log: Log): Running => ({
  ready: program.ready,
  metrics: () => program.metricsPage.read(),
  close: once(async () => {
    await program.drain();
    await program.close();
  }, log),
});

/** How long to wait for a part that hangs, ms. */
const CLOSE_MAX_MS = 20_000;

/** Makes `close` safe to call again: later callers wait for the same close. */
function once(close: () => Promise<void>, log: Log): () => Promise<void> {
  let closing: Promise<void> | null = null;
  const closeInTime = async (): Promise<void> => {
    const timer = new AbortController();
    const late = pause(CLOSE_MAX_MS, timer.signal).then(() => 'late' as const);
    try {
      if ((await Promise.race([close(), late])) === 'late') log.warn({}, 'not everything ended in time');
    } catch (err) {
      log.error({ err }, 'closing failed');
    } finally {
      timer.abort();
    }
  };
  return () => (closing ??= closeInTime());
}
