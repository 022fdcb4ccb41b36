import { CANCELLED } from 'node:dns';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { NetworkSet } from '../../admission/lists/network-set.js';
import type { WebhookTest } from '../../contract/webhooks.js';
import { signatureOf } from '../../http/webhook-signature.js';
import type { WebhookEndpointRow } from '../../mysql/tables.js';
import { createCheckedLookup, flawOfUrl, WrongAddress } from './addresses.js';

/** A whole call: look-up, connection and answer. */
const CALL_MAX_MS = 5_000;
/** Nothing in the answer is used but its status. */
const ANSWER_BYTES_MAX = 16_384;
/** Shorter than servers keep an idle connection: an event on a connection that they just closed would fail. */
const IDLE_MAX_MS = 2_000;
/** Refusals that say something about the receiver, not about the event. A later attempt may succeed. */
const NOT_ABOUT_THE_EVENT: ReadonlySet<number> = new Set([401, 403, 404, 408, 410, 425, 429]);

/** The body of a call. */
type WebhookEvent = Readonly<Record<string, string | number>> & { readonly id: string };
/** `secret_before` signs too, until the receiver knows the new secret. */
type Receiver = Pick<WebhookEndpointRow, 'url' | 'secret' | 'secret_before'>;

/**
 * - `delivered`: the receiver answered 2xx
 * - `rejected`: the receiver refused this event (4xx), and may take others
 * - `failed`: the receiver is down, slow or in trouble
 *
 * `detail` is the status of the answer, or why there is no answer.
 */
export type Sent = WebhookTest;

/** Sends a signed event. Never rejects. */
export type SendWebhook = (receiver: Receiver, event: WebhookEvent) => Promise<Sent>;

/**
 * Opens a sender. It connects only to an address that it has checked, because a name may lead somewhere else a moment
 * later, and follows no redirect.
 */
export function createWebhookSender(
  allowed: NetworkSet,
  nowMs: () => number,
  callMaxMs = CALL_MAX_MS,
  nameServers?: readonly string[],
): SendWebhook {
  const kept = { keepAlive: true, timeout: IDLE_MAX_MS };
  const agents = { http: new http.Agent(kept), https: new https.Agent(kept) };
  const lookup = createCheckedLookup(allowed, callMaxMs, nameServers);
  return async ({ url, secret, secret_before }, event) => {
    const flaw = flawOfUrl(url, allowed);
    if (flaw !== null) return { outcome: 'failed', detail: `the URL ${flaw}` };
    const target = new URL(url);
    const isEncrypted = target.protocol === 'https:';
    const body = JSON.stringify(event);
    const secrets = secret_before === null ? [secret] : [secret, secret_before];
    const signal = AbortSignal.timeout(callMaxMs);
    const options: https.RequestOptions = {
      method: 'POST',
      agent: isEncrypted ? agents.https : agents.http,
      lookup: lookup(isEncrypted),
      signal,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'Seckill-Webhook',
        'webhook-id': event.id,
        'webhook-signature': signatureOf(secrets, body, nowMs()),
      },
    };
    try {
      const status = await post(target, options, body);
      return { outcome: outcomeOf(status), detail: `status ${status}` };
    } catch (error) {
      const isLate = signal.aborted || (error as NodeJS.ErrnoException).code === CANCELLED;
      return { outcome: 'failed', detail: isLate ? `no answer within ${callMaxMs / 1000} s` : detailOf(error) };
    }
  };
}

function outcomeOf(status: number): Sent['outcome'] {
  if (status >= 200 && status < 300) return 'delivered';
  return status >= 400 && status < 500 && !NOT_ABOUT_THE_EVENT.has(status) ? 'rejected' : 'failed';
}

/** Rejects if the connection ends before the answer does. @returns the status */
async function post(url: URL, options: https.RequestOptions, body: string): Promise<number> {
  const { request } = url.protocol === 'https:' ? https : http;
  const req = request(url, options).on('error', () => undefined); // `once` and the answer report it
  req.end(body);
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  let bytes = 0;
  for await (const part of res) if ((bytes += part.length) > ANSWER_BYTES_MAX) break;
  return res.statusCode ?? 0;
}

/** Describes an error without any text of the receiver. */
function detailOf(error: unknown): string {
  if (error instanceof WrongAddress) return error.message;
  const { name, code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : name;
}
