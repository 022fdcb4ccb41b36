import type { IncomingMessage } from 'node:http';
import type { Environment } from '../core/config/load.js';
import type { OrderEvent } from '../core/order-event.js';
import type { Log } from '../core/ports/log.js';
import type { PaymentProvider, Payments } from '../core/ports/payment-provider.js';
import type { Caller } from '../http/auth.js';
import type { Settings } from './settings.js';

/** What each part takes. */
interface PartOptions {
  /** Values for the variables of the environment, by their names. What is not set here is read from `env`. */
  readonly settings?: Settings;
  /** Default: `process.env`. */
  readonly env?: Environment;
  /** Default: JSON lines on stderr, from `LOG_LEVEL` up. One of pino fits. */
  readonly log?: Log;
}

export interface WorkerOptions extends PartOptions {
  /**
   * Called with an error that is a mistake in the router or a worker, after it was logged. A worker that met one
   * has stopped: its messages go to other workers. Start another, or end the process.
   */
  readonly onBug?: (error: unknown, part: 'router' | 'worker') => void;
}

export interface KeeperOptions extends PartOptions {
  /**
   * Who takes the money, and gives it back. Each call may be repeated and has 20 s; one that rejects is `unknown`. The
   * same is given to every process. Alone, it reports in the format of ours (docs/api.md); with a `webhook`, in that one.
   * Default: what `PAYMENT_PROVIDER` names.
   */
  readonly payments?: PaymentProvider | Payments;
}

export interface SeckillOptions extends WorkerOptions, KeeperOptions {
  /**
   * Says who sent a request to the router: null is answered 401, and so is a `userId` that is not 1 to 128 visible ASCII characters.
   * If it throws or rejects, the answer is 503. Both are logged once a minute. It is asked again at each heartbeat of an event stream.
   * `JWT_…` and revocations are not used. A write that a page of another site sends (`Sec-Fetch-Site: cross-site`) is answered 403
   * before this is asked: a browser may have added a cookie to it.
   * Default: bearer tokens, as `JWT_…` says.
   */
  readonly authenticate?: (req: IncomingMessage) => Caller | null | Promise<Caller | null>;
  /** Called when something has happened to orders. */
  readonly hooks?: Hooks;
}

/** What happened to 1 to 10,000 orders of one sale, in one transaction. `findOrder` knows more of each. */
export type OrderHook = (event: OrderEvent) => void | Promise<void>;

/**
 * Functions that are called when something has happened to orders: usually within a second, after an outage when it is over.
 *
 * *At least once.* An event may come again, also to another process: make what follows from it safe to repeat, by its
 * `eventId` or by the order. *In any order*: `onPaid` of an order may come before its `onOrdered`.
 *
 * A hook that throws, or rejects, is called again with the same event after 1, 5, 15, 30 and then 60 s, and the few seconds
 * that the broker adds. After 16 retries the broker puts the message into `%DLQ%<group>`, which is yours to read
 * (docs/events.md). A hook has 30 s; then another process may get the same event.
 */
export interface Hooks {
  /**
   * The consumer group of your app, made once by `seckill topics --group <group>`. Its processes share the events. Two apps need two
   * groups.
   */
  readonly group: string;
  /** Accepted purchases have their orders, which wait to be paid. */
  readonly onOrdered?: OrderHook;
  /** Accepted purchases ended as failed. */
  readonly onFailed?: OrderHook;
  readonly onPaid?: OrderHook;
  /** Their buyers gave them up; the units are for sale again. */
  readonly onCancelled?: OrderHook;
  /** They were not paid in time; the units are for sale again. */
  readonly onExpired?: OrderHook;
}
