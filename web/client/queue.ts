import type { Client } from './index.js';
import { sleep } from './send.js';
import type { Answer, CallOptions, Place } from './types.js';

/** The result of waiting: a pass for the purchase, or null if the sale has no waiting room. */
export interface LetIn {
  readonly pass: string | null;
  /** ISO 8601. */
  readonly passEndsAt: string | null;
}

/** Pause before joining again. A ticket ends because its holder stayed away, so there is no reason to hurry. */
const JOIN_AGAIN_MS = 1_000;

/** Polls as often as the waiting room asks for, each time with the newest ticket. Replaces a ticket that has ended. */
export async function waitInQueue(
  saleId: string,
  client: Pick<Client, 'joinQueue' | 'readTicket'>,
  limits: CallOptions,
  onPlace?: (place: Place) => void,
): Promise<Answer<LetIn>> {
  let answer = await client.joinQueue(saleId, limits);
  for (;;) {
    if (!answer.ok) {
      if (answer.code !== 'ticket_not_found') return answer;
      await sleep(JOIN_AGAIN_MS * (1 + Math.random()), limits.signal);
      answer = await client.joinQueue(saleId, limits);
      continue;
    }
    const { status, body: place } = answer;
    onPlace?.(place);
    switch (place.status) {
      case 'admitted':
        return { ok: true, status, body: { pass: place.pass, passEndsAt: place.passEndsAt } };
      case 'no_queue':
        return { ok: true, status, body: { pass: null, passEndsAt: null } };
      case 'waiting':
        await sleep(place.pollAfterMs, limits.signal);
        answer = await client.readTicket(saleId, place.ticket, limits);
    }
  }
}
