import type { WebhookDelivery } from '../../contract/webhooks.js';
import { doublingDelayMs, jittered } from '../../core/back-off.js';
import type { Job } from '../../core/job.js';
import type { Clock } from '../../core/ports/clock.js';
import type { DueWork } from '../../core/ports/due-work.js';
import type { JobLeases } from '../../core/ports/job-leases.js';
import type { Log } from '../../core/ports/log.js';
import type { MysqlPool } from '../../mysql/pool.js';
import type { WebhookEndpointRow } from '../../mysql/tables.js';
import { createDeliveryStore, type DueOrder } from './delivery-store.js';
import { createEndpointStore } from './endpoint-store.js';
import type { WebhookMetrics } from './metrics.js';
import type { SendWebhook, Sent } from './send.js';

/** Orders of one take, and how many of them are sent at the same time. */
const ORDERS_PER_TAKE = 64;
const LANES = 8;
/** The most takes of one run. A backlog is worked off in one run, but no run is endless. */
const TAKES_MAX = 50;
const LEASE_MS = 15_000;
/** A take begins no call after this time, so that its last call and its writes end before its lease. */
const TAKE_MAX_MS = 8_000;
/** An event is tried again after 1, 2, 4 … s, and every day at the latest. */
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 86_400_000;
/** An endpoint in trouble gets one event after 1, 2, 4 … s, and every minute at the latest. */
const REST_MAX_MS = 60_000;

export interface Keeper {
  readonly mysql: MysqlPool;
  readonly leases: JobLeases;
  readonly owner: string;
  readonly sendWebhook: SendWebhook;
  readonly config: { readonly keeper: { readonly outboxEveryMs: number } };
  readonly due: (work: DueWork, job: Job) => Job;
  /** Aborts when the keeper stops: no call begins any more. */
  readonly stopping: AbortSignal;
  readonly clock: Clock;
  readonly metrics: WebhookMetrics;
  readonly log: Log;
}

interface Try {
  readonly delivery: WebhookDelivery;
  readonly sent: Sent;
}

/** Each run delivers to one endpoint that no other run of this process has. */
export function deliverWebhooks(keeper: Keeper): Job {
  const busy = new Set<string>();
  return {
    name: 'deliver-webhooks',
    async runOnce(): Promise<'idle' | void> {
      const due = await createDeliveryStore(keeper.mysql).endpointsDue();
      const endpointId = due.find((id) => !busy.has(id));
      if (endpointId === undefined) return;
      busy.add(endpointId);
      try {
        for (let takes = 1; takes <= TAKES_MAX && !keeper.stopping.aborted; takes++) {
          const taken = await take(endpointId, keeper);
          if (taken !== 'more') return taken;
        }
      } finally {
        busy.delete(endpointId);
      }
    },
  };
}

/** Sends the events of some orders. @returns `more` if more can be sent at once, `idle` if no event could be sent */
async function take(endpointId: string, keeper: Keeper): Promise<'more' | 'idle' | void> {
  const { mysql, leases, owner, clock } = keeper;
  const endsMs = clock.monotonicMs() + TAKE_MAX_MS;
  // One keeper delivers, so that two do not send events of one order at once.
  if (!(await leases.hold('deliver-webhooks', owner, LEASE_MS))) return 'idle';
  const endpoint = await createEndpointStore(mysql).find(endpointId);
  if (endpoint?.state !== 'active') return 'idle';
  const max = endpoint.failures > 0 ? 1 : ORDERS_PER_TAKE; // a receiver in trouble is only probed
  const { orders, isFull } = await createDeliveryStore(mysql).due(endpointId, max);
  const tries = await sendOrders(endpoint, orders, endsMs, keeper);
  await record(endpoint, tries, keeper);
  if (failureOf(tries) !== undefined) return;
  return isFull ? 'more' : tries.length === 0 ? 'idle' : undefined;
}

/** The failure of a receiver that is down: it took nothing. */
const failureOf = (tries: readonly Try[]): Sent | undefined =>
  tries.some(({ sent }) => sent.outcome === 'delivered')
    ? undefined
    : tries.find(({ sent }) => sent.outcome === 'failed')?.sent;

/** Sends the events of each order one after the other, up to the first that is not delivered. */
async function sendOrders(
  endpoint: WebhookEndpointRow,
  orders: readonly DueOrder[],
  endsMs: number,
  { sendWebhook, stopping, clock, metrics }: Keeper,
): Promise<Try[]> {
  const tries: Try[] = [];
  const isOver = (): boolean => stopping.aborted || failureOf(tries) !== undefined || clock.monotonicMs() > endsMs;
  const queue = orders.values();
  const lane = async (): Promise<void> => {
    for (const order of queue) {
      for (const delivery of order) {
        if (isOver()) return;
        const { eventId: id, type, saleId, orderId, at } = delivery;
        const sent = await sendWebhook(endpoint, { id, type, saleId, orderId, at: Date.parse(at) });
        metrics.webhookTried(sent.outcome);
        tries.push({ delivery, sent });
        if (sent.outcome !== 'delivered') break;
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return tries;
}

/** Records results, and when to try again. */
async function record(endpoint: WebhookEndpointRow, tries: readonly Try[], { mysql, log }: Keeper): Promise<void> {
  const [deliveries, endpoints] = [createDeliveryStore(mysql), createEndpointStore(mysql)];
  const undelivered = tries.filter(({ sent }) => sent.outcome !== 'delivered');
  const delivered = tries.filter(({ sent }) => sent.outcome === 'delivered');
  await deliveries.markDelivered(delivered.map(({ delivery }) => delivery.deliveryId));
  const down = failureOf(tries);
  for (const { delivery, sent } of undelivered) {
    // If the receiver is down, this says nothing about the event, which must be due again when the receiver is back.
    const maxMs = down !== undefined && sent.outcome === 'failed' ? REST_MAX_MS : RETRY_MAX_MS;
    const delayMs = jittered(doublingDelayMs(delivery.attempts + 1, RETRY_FIRST_MS, maxMs));
    await deliveries.postpone(endpoint.id, delivery, delayMs, sent.detail);
  }
  if (down !== undefined) {
    const restMs = doublingDelayMs(endpoint.failures + 1, RETRY_FIRST_MS, REST_MAX_MS);
    const { detail } = down;
    if (await endpoints.noteTrouble(endpoint.id, detail, restMs))
      log.error({ endpointId: endpoint.id, detail }, PAUSED);
  } else if (tries.length > 0) {
    await endpoints.noteAnswer(endpoint, delivered.length > 0 ? null : (undelivered[0]?.sent.detail ?? null));
  }
}

const PAUSED = 'nothing was delivered to a webhook endpoint for a day, so it is paused; run seckill webhooks list';
