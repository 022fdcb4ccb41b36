import { lookup as resolve } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import type { NetworkSet } from '../../admission/lists/network-set.js';
import type { Clock } from '../../core/ports/clock.js';
import { signatureOf } from '../../http/webhook-signature.js';
import { flawOfAddress, flawOfUrl } from './addresses.js';

/** A whole call, with its answer. */
const CALL_MAX_MS = 5_000;
/** Nothing in the answer is used but its status. */
const ANSWER_BYTES_MAX = 16_384;
const IDLE_MAX_MS = 10_000;
/** Refusals that a later attempt may not meet: they say something about the receiver, not about the event. */
export const NOT_ABOUT_THE_EVENT: ReadonlySet<number> = new Set([401, 403, 404, 408, 410, 425, 429]);

/** The body of a call. */
interface WebhookEvent {
  readonly id: string;
  readonly type: string;
  readonly [field: string]: string | number;
}

/**
 * - `delivered`: the receiver answered 2xx
 * - `rejected`: the receiver refused this event (4xx), and may take others
 * - `failed`: the receiver is down, slow or in trouble
 */
export interface Sent {
  readonly outcome: 'delivered' | 'rejected' | 'failed';
  /** The status of the answer, or why there is no answer. */
  readonly detail: string;
}

/** Sends a signed event. Never rejects. */
export type SendWebhook = (
  endpoint: { readonly url: string; readonly secret: string },
  event: WebhookEvent,
) => Promise<Sent>;

/**
 * Opens a sender. It connects only to an address that it has checked, because a name may lead somewhere else a moment
 * later, and follows no redirect.
 */
export function createWebhookSender(
  allowed: NetworkSet,
  clock: Pick<Clock, 'nowMs'>,
  callMaxMs = CALL_MAX_MS,
): SendWebhook {
  const kept = { keepAlive: true, timeout: IDLE_MAX_MS };
  const agents = { 'http:': new http.Agent(kept), 'https:': new https.Agent(kept) };
  return async (endpoint, event) => {
    const flaw = flawOfUrl(endpoint.url, allowed);
    if (flaw !== null) return { outcome: 'failed', detail: `the URL ${flaw}` };
    const url = new URL(endpoint.url);
    const isEncrypted = url.protocol === 'https:';
    const body = JSON.stringify(event);
    const signal = AbortSignal.timeout(callMaxMs);
    const options: https.RequestOptions = {
      method: 'POST',
      agent: agents[isEncrypted ? 'https:' : 'http:'],
      lookup: checkedLookup(isEncrypted, allowed),
      signal,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'Seckill-Webhook',
        'webhook-id': event.id,
        'webhook-signature': signatureOf(endpoint.secret, body, clock.nowMs()),
      },
    };
    try {
      const status = await post(url, options, body);
      return { outcome: outcomeOf(status), detail: `status ${status}` };
    } catch (error) {
      return { outcome: 'failed', detail: signal.aborted ? `no answer within ${callMaxMs / 1000} s` : detailOf(error) };
    }
  };
}

function outcomeOf(status: number): Sent['outcome'] {
  if (status >= 200 && status < 300) return 'delivered';
  return status >= 400 && status < 500 && !NOT_ABOUT_THE_EVENT.has(status) ? 'rejected' : 'failed';
}

/** Rejects if the connection ends before the answer does. @returns the status */
function post(url: URL, options: https.RequestOptions, body: string, isRetry = false): Promise<number> {
  return new Promise((answered, failed) => {
    const { request } = url.protocol === 'https:' ? https : http;
    const req = request(url, options, (res) => {
      let bytes = 0;
      const done = (): void => answered(res.statusCode ?? 0);
      res.on('data', (part: Buffer) => {
        bytes += part.length;
        if (bytes <= ANSWER_BYTES_MAX) return;
        done();
        req.destroy();
      });
      res.on('end', done).on('error', failed);
    });
    req.on('error', (error) => {
      // The receiver has closed an idle connection that we kept: this says nothing about the receiver.
      const { code = '' } = error as NodeJS.ErrnoException;
      const isStale = req.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(code);
      if (isStale && !isRetry) answered(post(url, options, body, true));
      else failed(error);
    });
    req.end(body);
  });
}

class WrongAddress extends Error {}

const checkedLookup =
  (isEncrypted: boolean, allowed: NetworkSet): LookupFunction =>
  (hostname, options, answer) =>
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return answer(error, '');
      for (const { address } of addresses) {
        const flaw = flawOfAddress(address, isEncrypted, allowed);
        if (flaw !== null) return answer(new WrongAddress(`the host has the address ${address}, which ${flaw}`), '');
      }
      const [first] = addresses;
      if (options.all === true) answer(null, addresses);
      else answer(null, first?.address ?? '', first?.family);
    });

/** Describes an error without any text of the receiver. */
function detailOf(error: unknown): string {
  if (error instanceof WrongAddress) return error.message;
  const { name, code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : name;
}
