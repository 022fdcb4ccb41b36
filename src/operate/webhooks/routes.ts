import { z } from 'zod';
import { limit, nextOf, queryWord, rowId } from '../../contract/fields.js';
import {
  DELIVERY_STATES,
  newWebhook,
  resentWebhooks,
  webhook,
  webhookChanges,
  webhookDeliveryPage,
  webhookList,
  webhookResend,
  webhookTest,
} from '../../contract/webhooks.js';
import { fieldError } from '../../core/field-errors.js';
import { json, noContent, problem } from '../../http/answer.js';
import { badFields, operatorRoute, jsonBody, type Route } from '../../http/route.js';
import { ENDPOINTS_MAX } from './endpoint-store.js';
import type { WebhookServices } from './services.js';

const ALL = { path: '/admin/v1/webhooks' } as const;
const ONE = { ...ALL, path: `${ALL.path}/{endpointId}`, params: z.object({ endpointId: rowId }) } as const;

export const webhookRoutes: readonly Route<WebhookServices>[] = [
  operatorRoute({
    ...ALL,
    method: 'get',
    operationId: 'listWebhooks',
    summary: 'Lists the webhook endpoints, oldest first.',
    access: 'viewer',
    answers: { 200: { description: 'all endpoints', schema: webhookList } },
    problems: [],
    handle: async (_, { webhooks }: WebhookServices) => json(200, 'found', { webhooks: await webhooks.list() }),
  }),
  operatorRoute({
    ...ALL,
    method: 'post',
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
      return typeof made === 'string' ? problem('wrong_state', { detail: made }) : json(201, 'created', made);
    },
  }),
  operatorRoute({
    ...ONE,
    method: 'patch',
    operationId: 'editWebhook',
    summary: 'Changes, pauses or resumes an endpoint, or replaces its secret. A paused endpoint gets its events later.',
    access: 'admin',
    body: jsonBody(webhookChanges),
    answers: { 200: { description: 'the endpoint as it is now', schema: webhook } },
    problems: ['webhook_not_found', 'wrong_state'],
    async handle({ params: { endpointId }, body, userId: actor }, { webhooks, flawOfWebhook }: WebhookServices) {
      const flaw = body.url === undefined ? null : flawOfWebhook(body.url);
      if (flaw !== null) return badFields([fieldError('url', flaw)]);
      const edited = await webhooks.edit(endpointId, body, actor);
      if (edited === null) return problem('webhook_not_found');
      return typeof edited === 'string' ? problem('wrong_state', { detail: edited }) : json(200, 'edited', edited);
    },
  }),
  operatorRoute({
    ...ONE,
    method: 'delete',
    operationId: 'removeWebhook',
    summary: 'Removes an endpoint. Events that were not delivered are not sent any more.',
    access: 'admin',
    answers: { 204: { description: 'removed' } },
    problems: ['webhook_not_found'],
    async handle({ params: { endpointId }, userId: actor }, { webhooks }: WebhookServices) {
      return (await webhooks.remove(endpointId, actor)) ? noContent('removed') : problem('webhook_not_found');
    },
  }),
  operatorRoute({
    ...ONE,
    method: 'post',
    path: `${ONE.path}/test`,
    operationId: 'testWebhook',
    summary: 'Sends an event of type `webhook.test` now, and returns what the endpoint answered.',
    access: 'operator',
    answers: { 200: { description: 'the endpoint was called', schema: webhookTest } },
    problems: ['webhook_not_found'],
    async handle({ params: { endpointId } }, services: WebhookServices) {
      const sent = await services.testWebhook(endpointId);
      return sent === null ? problem('webhook_not_found') : json(200, sent.outcome, sent);
    },
  }),
  operatorRoute({
    ...ONE,
    method: 'get',
    path: `${ONE.path}/deliveries`,
    operationId: 'listWebhookDeliveries',
    summary: 'Lists what an endpoint got or will get, newest first. Pass `next` as `before` to get the next page.',
    access: 'viewer',
    query: z.strictObject({ state: queryWord(DELIVERY_STATES).optional(), before: rowId.optional(), limit }),
    answers: { 200: { description: 'a page', schema: webhookDeliveryPage } },
    problems: [],
    async handle({ params: { endpointId }, query }, { webhookDeliveries }: WebhookServices) {
      const deliveries = await webhookDeliveries.list(endpointId, query);
      return json(200, 'found', { deliveries, next: nextOf(deliveries, query.limit, 'deliveryId') });
    },
  }),
  operatorRoute({
    ...ONE,
    method: 'post',
    path: `${ONE.path}/resend`,
    operationId: 'resendWebhooks',
    summary: 'Sends deliveries again. The receiver recognises an event that it already had by its id.',
    access: 'operator',
    body: jsonBody(webhookResend),
    answers: { 200: { description: 'the number of deliveries that belong to this endpoint', schema: resentWebhooks } },
    problems: [],
    async handle({ params: { endpointId }, body, userId: actor }, { webhookDeliveries }: WebhookServices) {
      return json(200, 'resent', { resent: await webhookDeliveries.resend(endpointId, body.deliveryIds, actor) });
    },
  }),
];
