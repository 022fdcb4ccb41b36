import type { NetworkSet } from '../../admission/lists/network-set.js';
import type { WebhookTest } from '../../contract/webhooks.js';
import { createGuardedPost, type PostOptions } from '../../http/guarded-post.js';
import { signatureOf } from '../../http/webhook-signature.js';
import type { WebhookEndpointRow } from '../../mysql/tables.js';
import { flawOfAddress, flawOfUrl } from './addresses.js';

/** Statuses that tell about the receiver, not about the event. A later attempt may succeed. */
const NOT_ABOUT_THE_EVENT: ReadonlySet<number> = new Set([401, 403, 404, 408, 410, 425, 429]);

type WebhookEvent = Readonly<Record<string, string | number>> & { readonly id: string };
/** `secret_before` signs too, until the receiver knows the new secret. */
type Receiver = Pick<WebhookEndpointRow, 'url' | 'secret' | 'secret_before'>;

/** `rejected`: the receiver refused this event (4xx). `failed`: it is down, slow or in trouble. `detail`: reason. */
export type Sent = WebhookTest;

/** Never rejects. */
export type SendWebhook = (receiver: Receiver, event: WebhookEvent) => Promise<Sent>;

export function createWebhookSender(allowed: NetworkSet, nowMs: () => number, options?: PostOptions): SendWebhook {
  const post = createGuardedPost((address, isEncrypted) => flawOfAddress(address, isEncrypted, allowed), options);
  return async ({ url, secret, secret_before }, event) => {
    const flaw = flawOfUrl(url, allowed);
    if (flaw !== null) return failed(`the URL ${flaw}`);
    const body = JSON.stringify(event);
    const secrets = secret_before === null ? [secret] : [secret, secret_before];
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'Seckill-Webhook',
      'webhook-id': event.id,
      'webhook-signature': signatureOf(secrets, body, nowMs()),
    };
    const answer = await post(url, headers, body);
    return typeof answer === 'string' ? failed(answer) : { outcome: outcomeOf(answer), detail: `status ${answer}` };
  };
}

/** Length of the columns for errors. */
const DETAIL_MAX = 200;
const failed = (detail: string): Sent => ({ outcome: 'failed', detail: detail.slice(0, DETAIL_MAX) });

function outcomeOf(status: number): Sent['outcome'] {
  if (status >= 200 && status < 300) return 'delivered';
  return status >= 400 && status < 500 && !NOT_ABOUT_THE_EVENT.has(status) ? 'rejected' : 'failed';
}
