import { z } from 'zod';
import { isoTime, isoTimeOrNull, limit, nextOf, queryWord, rowId } from '../../contract/fields.js';
import {
  newWebhook,
  resentWebhooks,
  webhook,
  webhookChanges,
  webhookDeliveryPage,
  webhookList,
  webhookTest,
  type Webhook as WebhookBody,
  type WebhookDelivery as DeliveryBody,
} from '../../contract/webhooks.js';
import { fieldError } from '../../core/field-errors.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json, noContent, problem } from '../../http/answer.js';
import { badFields, defineRoute, jsonBody, type Route } from '../../http/route.js';
import { DELIVERY_STATES, type WebhookDelivery } from './delivery-store.js';
import { ENDPOINTS_MAX, type WebhookEndpoint } from './endpoint-store.js';
import type { WebhookServices } from './services.js';

const OF_OPERATORS = { label: 'admin', endpoint: null } as const;
const PATH = '/admin/v1/webhooks';
const ONE = `${PATH}/{endpointId}`;
const params = z.object({ endpointId: rowId });
const RESENT_MAX = 200;
export const TOO_MANY = `There are ${ENDPOINTS_MAX} endpoints already. Remove one first.`;

const listWebhooks = defineRoute({
  ...OF_OPERATORS,
  method: 'get',
  path: PATH,
  operationId: 'listWebhooks',
  summary: 'Lists the webhook endpoints, oldest first.',
  access: 'viewer',
  answers: { 200: { description: 'all endpoints', schema: webhookList } },
  problems: [],
  async handle(_, { webhooks }: WebhookServices) {
    return json(200, 'found', { webhooks: (await webhooks.list()).map((one) => webhookBody(one)) });
  },
});

const createWebhook = defineRoute({
  ...OF_OPERATORS,
  method: 'post',
  path: PATH,
  operationId: 'createWebhook',
  summary: `Creates a webhook endpoint, at most ${ENDPOINTS_MAX}. Its secret is returned only here.`,
  access: 'admin',
  body: jsonBody(newWebhook),
  answers: { 201: { description: 'created', schema: webhook } },
  problems: ['wrong_state'],
  async handle({ body, userId: actor }, { webhooks, flawOfWebhook }: WebhookServices) {
    const flaw = flawOfWebhook(body.url);
    if (flaw !== null) return badFields([fieldError('url', flaw)]);
    const made = await webhooks.create(body, actor);
    return made === null ? problem('wrong_state', { detail: TOO_MANY }) : json(201, 'created', webhookBody(made, true));
  },
});

const editWebhook = defineRoute({
  ...OF_OPERATORS,
  method: 'patch',
  path: ONE,
  operationId: 'editWebhook',
  summary: 'Changes, pauses or resumes an endpoint, or replaces its secret. A paused endpoint gets its events later.',
  access: 'admin',
  params,
  body: jsonBody(webhookChanges),
  answers: { 200: { description: 'the endpoint as it is now', schema: webhook } },
  problems: ['webhook_not_found'],
  async handle({ params: { endpointId }, body, userId: actor }, { webhooks, flawOfWebhook }: WebhookServices) {
    const flaw = body.url === undefined ? null : flawOfWebhook(body.url);
    if (flaw !== null) return badFields([fieldError('url', flaw)]);
    const edited = await webhooks.edit(endpointId, body, actor);
    return edited === null ? problem('webhook_not_found') : json(200, 'edited', webhookBody(edited, body.newSecret));
  },
});

const removeWebhook = defineRoute({
  ...OF_OPERATORS,
  method: 'delete',
  path: ONE,
  operationId: 'removeWebhook',
  summary: 'Removes an endpoint. Events that were not delivered are not sent any more.',
  access: 'admin',
  params,
  answers: { 204: { description: 'removed' } },
  problems: ['webhook_not_found'],
  async handle({ params: { endpointId }, userId: actor }, { webhooks }: WebhookServices) {
    return (await webhooks.remove(endpointId, actor)) ? noContent('removed') : problem('webhook_not_found');
  },
});

const testWebhook = defineRoute({
  ...OF_OPERATORS,
  method: 'post',
  path: `${ONE}/test`,
  operationId: 'testWebhook',
  summary: 'Sends an event of type `webhook.test` now, and returns what the endpoint answered.',
  access: 'operator',
  params,
  answers: { 200: { description: 'the endpoint was called', schema: webhookTest } },
  problems: ['webhook_not_found'],
  async handle({ params: { endpointId } }, services: WebhookServices) {
    const sent = await services.testWebhook(endpointId);
    return sent === null ? problem('webhook_not_found') : json(200, sent.outcome, sent);
  },
});

const listDeliveries = defineRoute({
  ...OF_OPERATORS,
  method: 'get',
  path: `${ONE}/deliveries`,
  operationId: 'listWebhookDeliveries',
  summary: 'Lists what an endpoint got or will get, newest first. Pass `next` as `before` to get the next page.',
  access: 'viewer',
  params,
  query: z.strictObject({ state: queryWord(DELIVERY_STATES).optional(), before: rowId.optional(), limit }),
  answers: { 200: { description: 'a page', schema: webhookDeliveryPage } },
  problems: [],
  async handle({ params: { endpointId }, query }, { webhookDeliveries }: WebhookServices) {
    const found = await webhookDeliveries.list(endpointId, query);
    return json(200, 'found', { deliveries: found.map(deliveryBody), next: nextOf(found, query.limit, 'deliveryId') });
  },
});

const resendWebhooks = defineRoute({
  ...OF_OPERATORS,
  method: 'post',
  path: `${ONE}/resend`,
  operationId: 'resendWebhooks',
  summary: 'Sends deliveries again. The receiver recognises an event that it already had by its id.',
  access: 'operator',
  params,
  body: jsonBody(z.strictObject({ deliveryIds: z.array(rowId).min(1).max(RESENT_MAX) }).meta({ id: 'WebhookResend' })),
  answers: { 200: { description: 'the number of deliveries that belong to this endpoint', schema: resentWebhooks } },
  problems: [],
  async handle({ params: { endpointId }, body, userId: actor }, { webhookDeliveries }: WebhookServices) {
    return json(200, 'resent', { resent: await webhookDeliveries.resend(endpointId, body.deliveryIds, actor) });
  },
});

export const webhookRoutes: readonly Route<WebhookServices>[] = [
  listWebhooks,
  createWebhook,
  editWebhook,
  removeWebhook,
  testWebhook,
  listDeliveries,
  resendWebhooks,
];

/** Formats an endpoint for programs. @param withSecret only when the secret is new */
export const webhookBody = (
  { failures: _, secret, failingSinceMs, createdAtMs, ...endpoint }: WebhookEndpoint,
  withSecret = false,
): WebhookBody => ({
  ...endpoint,
  failingSince: isoTimeOrNull(failingSinceMs),
  createdAt: isoTime(createdAtMs),
  ...withoutUndefined({ secret: withSecret ? secret : undefined }),
});

export const deliveryBody = ({ atMs, nextTryMs, ...delivery }: WebhookDelivery): DeliveryBody => ({
  ...delivery,
  at: isoTime(atMs),
  nextTry: delivery.state === 'due' ? isoTime(nextTryMs) : null,
});
