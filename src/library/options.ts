import type { IncomingMessage } from 'node:http';
import type { Environment } from '../core/config/load.js';
import type { OrderEvent } from '../core/order-event.js';
import type { Log } from '../core/ports/log.js';
import type { PaymentProvider, Payments } from '../core/ports/payment-provider.js';
import type { Caller } from '../http/auth.js';
import type { Settings } from './settings.js';

/** Options that all parts have. */
interface PartOptions {
  /** Values for environment variables, by name. A variable that is missing here is read from `env`. */
  readonly settings?: Settings;
  /** Default: `process.env`. */
  readonly env?: Environment;
  /** Default: JSON lines on stderr, from `LOG_LEVEL` up. You can pass a pino logger. */
  readonly log?: Log;
}

export interface WorkerOptions extends PartOptions {
  /**
   * Called with an error that is a bug in the router or a worker, after it was logged. A worker with a bug has stopped,
   * and its messages go to other workers. Start another worker, or end the process.
   */
  readonly onBug?: (error: unknown, part: 'router' | 'worker') => void;
}

export interface KeeperOptions extends PartOptions {
  /**
   * Takes payments and refunds them. Each call may be repeated and has 20 s to answer. A call that rejects counts as
   * `unknown`. Pass the same provider to every process. If you pass only a provider, its reports must be in our format
   * (docs/api.md); if you pass `Payments` with a `webhook`, they must be in the format of that webhook. Default: the
   * provider that `PAYMENT_PROVIDER` names.
   */
  readonly payments?: PaymentProvider | Payments;
}

export interface SeckillOptions extends WorkerOptions, KeeperOptions {
  /**
   * Identifies the sender of a request to the router. If it returns null, or a `userId` that is not 1 to 128 visible
   * ASCII characters, the answer is 401. If it throws or rejects, the answer is 503. Invalid ids and errors are logged
   * once a minute. It is called again at each heartbeat of an event stream. `JWT_…` settings and revocations are not
   * used. A write from a page of another site (`Sec-Fetch-Site: cross-site`) is answered with 403 before this is
   * called, because a browser may have added a cookie to it. Default: bearer tokens, according to the `JWT_…` settings.
   */
  readonly authenticate?: (req: IncomingMessage) => Caller | null | Promise<Caller | null>;
  /** Functions that are called after something has happened to orders. */
  readonly hooks?: Hooks;
}

/**
 * Handles an event of 1 to 10,000 orders of one sale, all from one transaction. `findOrder` returns more about each
 * order.
 */
export type OrderHook = (event: OrderEvent) => void | Promise<void>;

/**
 * Functions that are called after something has happened to orders: usually within a second, or once an outage is over.
 *
 * *At least once.* An event may be delivered twice, even to different processes. Make its effects safe to repeat, by
 * its `eventId` or by the order. *In any order.* For example, `onPaid` of an order may be called before its
 * `onOrdered`.
 *
 * A hook that throws, or rejects, is called again with the same event after 1, 5, 15, 30 and then 60 s, and the few
 * seconds that the broker adds. After 16 retries, the broker puts the message into `%DLQ%<group>`, which your app has
 * to read (docs/events.md). A hook has 30 s; then another process may get the same event.
 */
export interface Hooks {
  /**
   * The consumer group of your app, created once by `seckill topics --group <group>`. All processes of the app share
   * the events. A second app needs its own group.
   */
  readonly group: string;
  /** Accepted purchases now have orders, which wait for payment. */
  readonly onOrdered?: OrderHook;
  /** Accepted purchases have failed. */
  readonly onFailed?: OrderHook;
  readonly onPaid?: OrderHook;
  /** Buyers cancelled their orders. The units are back on sale. */
  readonly onCancelled?: OrderHook;
  /** Orders were not paid in time. The units are back on sale. */
  readonly onExpired?: OrderHook;
  /** A refund was ordered. Do not ship the order. */
  readonly onRefunding?: OrderHook;
  readonly onRefunded?: OrderHook;
  readonly onReturned?: OrderHook;
  readonly onRefundFailed?: OrderHook;
  readonly onDisputed?: OrderHook;
  readonly onDisputeWon?: OrderHook;
}
