import { z } from 'zod';
import { place, purchaseToken } from '../../contract/purchases.js';
import { isoTime, saleId, saleParams, text } from '../../contract/fields.js';
import { assertNever } from '../../core/errors.js';
import type { Sale } from '../../core/sale.js';
import type { QueueAnswer } from '../../admission/queue/waiting-rooms.js';
import { json, problem, type Answer } from '../answer.js';
import { defineRoute, type RouteServices } from '../route.js';
import { SIGNATURE } from './proof-headers.js';

/** The waiting room of a sale: a buyer joins, returns with a ticket, and gets a pass. Also issues purchase tokens. */

export const joinQueue = defineRoute({
  method: 'post',
  path: '/v1/sales/{saleId}/queue',
  label: 'queue',
  operationId: 'joinQueue',
  summary: 'Joins the waiting room of a sale. Safe to repeat: a waiting buyer keeps the place.',
  access: 'sale_buyer',
  params: saleParams,
  headers: SIGNATURE,
  answers: {
    200: { description: 'admitted, or the sale has no queue', schema: place },
    202: { description: 'a place in the queue', schema: place, headers: { Location: 'the place in the queue' } },
  },
  problems: ['not_found', 'loading', 'not_open', 'closed', 'sold_out', 'overloaded'],
  async handle({ userId, roles, params, mount }, services) {
    const sale = await queuedSale(params.saleId, services);
    if ('status' in sale) return sale;
    return placeAnswer(202, mount, sale, await services.rooms.join(sale, { userId, roles }));
  },
});

export const readTicket = defineRoute({
  method: 'get',
  path: '/v1/sales/{saleId}/queue/{ticket}',
  label: 'queue',
  operationId: 'readTicket',
  summary: 'Returns a place in the queue. Each response has a new ticket, which replaces the old one.',
  access: 'sale_buyer',
  params: z.object({ saleId, ticket: text }),
  headers: SIGNATURE,
  answers: { 200: { description: 'the place', schema: place } },
  problems: ['not_found', 'loading', 'not_open', 'closed', 'sold_out', 'overloaded', 'ticket_not_found'],
  async handle({ userId, params: { saleId, ticket }, mount }, services) {
    const sale = await queuedSale(saleId, services);
    if ('status' in sale) return sale;
    const answer = await services.rooms.read(sale, { userId }, ticket);
    return answer.outcome === 'ticket_not_found' ? problem(answer.outcome) : placeAnswer(200, mount, sale, answer);
  },
});

export const fetchPurchaseToken = defineRoute({
  method: 'post',
  path: '/v1/sales/{saleId}/purchase-token',
  label: 'purchase_token',
  operationId: 'fetchPurchaseToken',
  summary:
    'Returns the purchase token of the buyer, or null if the sale needs none. The token stays the same until it expires. Safe to repeat.',
  access: 'sale_buyer',
  params: saleParams,
  headers: SIGNATURE,
  answers: {
    200: { description: 'the token', schema: purchaseToken },
  },
  problems: ['not_found', 'loading', 'closed', 'not_open', 'tokens_gone', 'token_limit_reached'],
  async handle({ userId, params, req }, services) {
    const sale = await saleOf(params.saleId, services);
    if ('status' in sale) return sale;
    if (sale.state === 'closed') return problem('closed');
    const answer = await services.tokens.issue(sale, { userId, address: services.addressOf(req) });
    switch (answer.outcome) {
      case 'issued':
        return json(200, answer.outcome, { token: answer.token, endsAt: isoTime(answer.untilMs) });
      case 'not_needed':
        return json(200, answer.outcome, { token: null, endsAt: null });
      case 'not_open':
        return problem('not_open', { detail: 'Purchase tokens of this sale are not issued yet.' });
      case 'closed':
      case 'token_limit_reached':
        return problem(answer.outcome);
      case 'tokens_gone':
        return problem(answer.outcome, { retryAfterMs: answer.retryAfterMs });
      case 'rate_limited':
        return problem(answer.outcome, { retryAfterMs: answer.retryAfterMs, detail: MANY_TOKENS_HERE });
      default:
        return assertNever(answer);
    }
  },
});

/** Time after which a sale that is due is usually warm. Buyers return at random moments up to twice that time. */
const WARMED_MS = 1000;
const MANY_TOKENS_HERE = 'Too many buyers at your address have a purchase token. Buy with a token, or try again later.';

/**
 * Returns the sale from its snapshot, which stays available while the servers behind it are down, or says why there is
 * no snapshot.
 * @throws OperationalError redis or mysql, for a sale that this process has never seen
 */
async function saleOf(
  saleId: string,
  { snapshots, clock }: RouteServices,
): Promise<Sale | Answer<'not_found' | 'loading' | 'not_open' | 'closed'>> {
  const snapshot = await snapshots.get(saleId);
  if (snapshot.snapshot === 'announced') return announced(snapshot.sale, clock.nowMs());
  return snapshot.snapshot === 'ready' ? snapshot.sale : problem(snapshot.snapshot);
}

/** An operator may still move the opening of an announced sale, so it has neither a waiting room nor tokens yet. */
function announced({ opensAtMs, closesAtMs, warmBeforeMs }: Sale, nowMs: number): Answer<'not_open' | 'closed'> {
  if (nowMs >= closesAtMs) return problem('closed');
  const warmsInMs = opensAtMs - (warmBeforeMs ?? 0) - nowMs;
  const retryAfterMs = Math.ceil(Math.max(warmsInMs, 0) + WARMED_MS * (1 + Math.random()));
  return problem('not_open', { retryAfterMs, ...(nowMs < opensAtMs ? { opensAtMs } : {}) });
}

/** Returns the sale if buyers can still wait for it. */
async function queuedSale(
  saleId: string,
  services: RouteServices,
): Promise<Sale | Answer<'not_found' | 'loading' | 'not_open' | 'closed'>> {
  const sale = await saleOf(saleId, services);
  if ('status' in sale) return sale;
  if (sale.state !== 'closed' && services.clock.nowMs() < sale.closesAtMs) return sale;
  services.rooms.end(sale.saleId);
  return problem('closed');
}

/** @param waitingStatus 202 for a new place, 200 for an existing one */
function placeAnswer<S extends 200 | 202>(
  waitingStatus: S,
  mount: string,
  { saleId }: Sale,
  answer: QueueAnswer,
): Answer<S | 200 | 'sold_out' | 'overloaded'> {
  switch (answer.outcome) {
    case 'waiting': {
      const { outcome: status, ticket, priority, position, estimateMs, pollMs: pollAfterMs } = answer;
      const location = `${mount}/v1/sales/${saleId}/queue/${ticket}`;
      const headers = ['Cache-Control', 'no-store', 'Location', location];
      return json(waitingStatus, status, { status, ticket, priority, position, estimateMs, pollAfterMs }, headers);
    }
    case 'admitted': {
      const { outcome: status, pass, untilMs } = answer;
      return json(200, status, { status, pass, passEndsAt: isoTime(untilMs) });
    }
    case 'no_queue':
      return json(200, answer.outcome, { status: answer.outcome });
    case 'sold_out':
    case 'overloaded':
      return problem(answer.outcome);
    default:
      return assertNever(answer);
  }
}
