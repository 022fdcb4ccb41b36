import type { IncomingMessage } from 'node:http';
import type { Environment } from '../core/config/load.js';
import type { OrderEvent } from '../core/order-event.js';
import type { Log } from '../core/ports/log.js';
import type { PaymentProvider, Payments } from '../core/ports/payment-provider.js';
import type { Caller } from '../http/auth.js';
import type { Settings } from './settings.js';

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
   * Called with a bug in the router or a worker, after it was logged. A worker with a bug has stopped, and other
   * workers take over. Start another worker, or end the process.
   */
  readonly onBug?: (error: unknown, part: 'router' | 'worker') => void;
}

export interface KeeperOptions extends PartOptions {
  /**
   * Takes payments and refunds them. Each call may be repeated and has 20 s; a call that rejects counts as `unknown`.
   * Pass the same provider to every process. Reports must be in our format (docs/api.md), or in that of the `webhook`
   * in `Payments`. Default: the provider that `PAYMENT_PROVIDER` names.
   */
  readonly payments?: PaymentProvider | Payments;
}

export interface SeckillOptions extends WorkerOptions, KeeperOptions {
  /**
   * Identifies the sender of a request. Null, or a `userId` that is not 1 to 128 visible ASCII characters, is answered
   * with 401, an error with 503. Invalid ids and errors are logged once a minute. Called again at each heartbeat of an
   * event stream. Replaces the `JWT_…` settings and revocations. A write from another site (`Sec-Fetch-Site:
   * cross-site`) gets 403 before, because a browser may have added a cookie. Default: bearer tokens.
   */
  readonly authenticate?: (req: IncomingMessage) => Caller | null | Promise<Caller | null>;
  readonly hooks?: Hooks;
}

/** Handles 1 to 10,000 orders of one sale and one transaction. `findOrder` returns more about each order. */
export type OrderHook = (event: OrderEvent) => void | Promise<void>;

/**
 * Called after something has happened to orders: usually within a second, or once an outage is over.
 *
 * *At least once.* An event may be delivered twice, even to different processes. Make its effects safe to repeat, by
 * its `eventId` or by the order. *In any order.* For example, `onPaid` of an order may be called before its
 * `onOrdered`.
 *
 * A hook that throws or rejects is called again after 1, 5, 15, 30 and then 60 s, plus a few seconds in the broker.
 * After 16 retries, the message goes to `%DLQ%<group>`, which your app has to read (docs/events.md). After 30 s,
 * another process may get the same event.
 */
export interface Hooks {
  /** Consumer group of the app, created once by `seckill topics --group <group>`. A second app needs its own group. */
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
