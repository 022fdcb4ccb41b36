import type { IncomingMessage } from 'node:http';
import type { Environment } from '../core/config/load.js';
import type { OrderEvent } from '../core/order-event.js';
import type { Log } from '../core/ports/log.js';
import type { PaymentProvider, Payments } from '../core/ports/payment-provider.js';
import type { Caller } from '../http/auth.js';
import type { Settings } from './settings.js';

/** Options that every part takes. */
interface PartOptions {
  /** Values for environment variables, by name. A variable that is not set here is read from `env`. */
  readonly settings?: Settings;
  /** Default: `process.env`. */
  readonly env?: Environment;
  /** Default: JSON lines on stderr, from `LOG_LEVEL` up. A pino logger fits. */
  readonly log?: Log;
}

export interface WorkerOptions extends PartOptions {
  /**
   * Called with an error that is a bug in the router or a worker, after it was logged. A worker that met a bug has
   * stopped: its messages go to other workers. Start another, or end the process.
   */
  readonly onBug?: (error: unknown, part: 'router' | 'worker') => void;
}

export interface KeeperOptions extends PartOptions {
  /**
   * Takes payments and refunds them. Each call may be repeated and has 20 s. A call that rejects is `unknown`. Give the
   * same provider to every process. A provider alone reports in our format (docs/api.md), `Payments` with a `webhook`
   * in the format of the webhook. Default: the provider that `PAYMENT_PROVIDER` names.
   */
  readonly payments?: PaymentProvider | Payments;
}

export interface SeckillOptions extends WorkerOptions, KeeperOptions {
  /**
   * Identifies the sender of a request to the router. Null is answered 401, and so is a `userId` that is not 1 to 128
   * visible ASCII characters. If it throws or rejects, the answer is 503. Both are logged once a minute. It is called
   * again at each heartbeat of an event stream. `JWT_…` settings and revocations are not used. A write from a page of
   * another site (`Sec-Fetch-Site: cross-site`) is answered 403 before this is called: a browser may have added a
   * cookie to it. Default: bearer tokens, as the `JWT_…` settings say.
   */
  readonly authenticate?: (req: IncomingMessage) => Caller | null | Promise<Caller | null>;
  /** Functions called after something has happened to orders. */
  readonly hooks?: Hooks;
}

/**
 * Handles an event of 1 to 10,000 orders of one sale, all from one transaction. `findOrder` returns more of each order.
 */
export type OrderHook = (event: OrderEvent) => void | Promise<void>;

/**
 * Functions that are called after something has happened to orders: usually within a second, or when an outage is over.
 *
 * *At least once.* An event may be delivered twice, also to another process. Make its effects safe to repeat, by its
 * `eventId` or by the order. *In any order*: `onPaid` of an order may be called before its `onOrdered`.
 *
 * A hook that throws, or rejects, is called again with the same event after 1, 5, 15, 30 and then 60 s, and the few
 * seconds that the broker adds. After 16 retries the broker puts the message into `%DLQ%<group>`, which is yours to
 * read (docs/events.md). A hook has 30 s; then another process may get the same event.
 */
export interface Hooks {
  /**
   * The consumer group of your app, created once by `seckill topics --group <group>`. The processes of the app share
   * the events. Two apps need two groups.
   */
  readonly group: string;
  /** Accepted purchases now have orders, which wait for payment. */
  readonly onOrdered?: OrderHook;
  /** Accepted purchases have failed. */
  readonly onFailed?: OrderHook;
  readonly onPaid?: OrderHook;
  /** Buyers cancelled their orders. The units are for sale again. */
  readonly onCancelled?: OrderHook;
  /** Orders were not paid in time. The units are for sale again. */
  readonly onExpired?: OrderHook;
  /** A refund was ordered. Stop the parcel. */
  readonly onRefunding?: OrderHook;
  readonly onRefunded?: OrderHook;
  readonly onReturned?: OrderHook;
  readonly onRefundFailed?: OrderHook;
  readonly onDisputed?: OrderHook;
  readonly onDisputeWon?: OrderHook;
}
