import { pause } from '../core/after.js';
import { OperationalError } from '../core/errors.js';
import type { Log } from '../core/ports/log.js';
import type { Tls } from '../core/tls.js';
import { accessRefusalIn } from './credentials.js';
import { handshakeFlaw } from './handshake.js';
import { proxiesOf, type ClientAddress, type StartLimits } from './client-options.js';
import { randomBytes } from 'node:crypto';
import { MessageIdFactory } from 'rocketmq-client-nodejs';

/** A start that takes longer never ends: the client missed the answer, or waits for a group that does not exist. */
const STARTUP_TIMEOUT_MS = 20_000;
const START_ATTEMPTS = 3;
/** The client waits for its proxy to answer the shutdown. A proxy that is gone must not block us. */
const SHUTDOWN_TIMEOUT_MS = 5_000;

export interface StartableClient {
  startup(): Promise<void>;
  shutdown(): Promise<void>;
}

/**
 * Starts a new instance for each attempt, because a client that hangs or fails cannot start again.
 * @throws OperationalError with endpoint, topic, group and what to check. Retryable unless the broker refuses our
 * login, which is reported at once
 */
export async function startClient<C extends StartableClient>(
  make: () => C,
  address: ClientAddress,
  log: Log,
  { startupTimeoutMs: timeoutMs = STARTUP_TIMEOUT_MS, attempts = START_ATTEMPTS, tls = null }: StartWay = {},
): Promise<C> {
  if (tls !== null) await assertHandshake(address, tls, log);
  let last: unknown;
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const client = make();
    try {
      const started = await within(client.startup(), timeoutMs);
      if (started) {
        useRandomMessageIds();
        return client;
      }
      last = undefined;
    } catch (error) {
      last = error;
    }
    void stopClient(client, log); // time-limited, never rejects; the next attempt need not wait
    if (accessRefusalIn(rootCause(last)) !== null) break; // the next attempt would get the same answer
    if (tls === null && isUnavailable(rootCause(last))) await assertHandshake(address, null, log);
    // the caller logs the error of the last attempt
    if (attempt < attempts) log.warn({ ...address, attempt, attempts, err: last }, 'rocketmq client did not start');
  }
  throw startFailure(address, last, timeoutMs);
}

/** Options of a start. If `tls` is null, the client uses no TLS. */
type StartWay = StartLimits & { readonly tls?: Tls | null | undefined };

/**
 * Warns of each proxy that a client cannot use.
 * @throws OperationalError if it can use none: only one side uses TLS, or the certificate is not trusted
 */
async function assertHandshake({ endpoint }: ClientAddress, tls: Tls | null, log: Log): Promise<void> {
  const proxies = proxiesOf(endpoint);
  const flaws = await Promise.all(proxies.map((proxy) => handshakeFlaw(proxy, tls)));
  const said = proxies.flatMap((proxy, nth) => (flaws[nth] === null ? [] : [`RocketMQ at ${proxy} ${flaws[nth]}.`]));
  if (said.length === proxies.length) throw new OperationalError('rocketmq', said.join(' '), { retryable: false });
  for (const flaw of said) log.warn({}, flaw);
}

/** gRPC could not connect: nothing listens there, or the server uses another protocol. */
const isUnavailable = (error: unknown): boolean => (error as { readonly code?: unknown } | undefined)?.code === 14;

/** Never rejects, and gives up after `timeoutMs`: the client's last call may hang, and is not needed. */
export async function stopClient(
  client: StartableClient,
  log: Log,
  timeoutMs: number = SHUTDOWN_TIMEOUT_MS,
): Promise<void> {
  try {
    const stopped = await within(client.shutdown(), timeoutMs);
    if (!stopped) log.debug({ timeoutMs }, 'rocketmq client did not shut down in time');
  } catch (error) {
    log.debug({ err: error }, 'rocketmq client failed to shut down');
  }
}

/** Returns true if the work ended within `ms`. A later failure is ignored. */
export async function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}

function startFailure(address: ClientAddress, cause: unknown, timeoutMs: number): OperationalError {
  const where = `endpoint ${address.endpoint}, topic ${address.topic}${address.group ? `, group ${address.group}` : ''}`;
  const refusal = accessRefusalIn(rootCause(cause));
  if (refusal !== null) {
    return new OperationalError('rocketmq', `RocketMQ at ${address.endpoint} ${refusal}.`, { retryable: false, cause });
  }
  const detail = cause === undefined ? `no answer within ${timeoutMs} ms` : rootMessage(cause);
  const message = `cannot start a RocketMQ client (${where}): ${detail}. ${adviceFor(detail)}`;
  return new OperationalError('rocketmq', message, { retryable: true, cause });
}

/** Returns what an operator can do about an error of the broker. */
export function adviceFor(detail: string): string {
  if (/ECONNREFUSED|UNAVAILABLE|DEADLINE/.test(detail)) return 'Check that the proxy runs there.';
  if (/response-code=40[13]00/.test(detail)) return 'Check ROCKETMQ_ACCESS_KEY and ROCKETMQ_ACCESS_SECRET.';
  if (/^no answer/.test(detail))
    return 'Check that the proxy runs there. Then run `seckill topics` to create missing topics and groups.';
  return 'Run `seckill topics` if the topic or the group is missing.';
}

/** Returns the innermost error. The client wraps the cause twice, and only the cause is helpful. */
function rootCause(error: unknown): unknown {
  let inner = error;
  for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause instanceof Error; depth++) inner = inner.cause;
  return inner;
}

function rootMessage(error: unknown): string {
  const root = rootCause(error);
  return root instanceof Error ? root.message : String(root);
}

const PROCESS_MAC = randomBytes(6).toString('hex');

/**
 * An id is MAC + pid + second + counter, and containers share MAC and pid. With equal ids, a commit could end the half
 * message of another process. Call this after `startup()`, because the client sets the real MAC some time after its
 * import.
 */
export function useRandomMessageIds(): void {
  MessageIdFactory.MAC = PROCESS_MAC;
}
