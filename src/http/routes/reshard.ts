import { z } from 'zod';
import { isSaleId } from '../../core/ids.js';
import { RESHARD_SENTENCES, type Resharded } from '../../core/resharded.js';
import { BUCKETS_MAX } from '../../core/unit-transfer.js';
import { collectBody } from '../body.js';
import { promisesJson } from '../purchase-request.js';
import type { HttpServices } from '../services.js';
import { asAdmin } from './admin-sales.js';
import type { Exchange, Router } from './router.js';

const message = `must be a whole number from 2 to ${BUCKETS_MAX}`;
const body = z.strictObject({ buckets: z.int(message).min(2, message).max(BUCKETS_MAX, message) });

/** Splits a sale into more buckets while it sells. */
export function mountReshard(router: Router, services: HttpServices): void {
  router.mount('admin', '/admin/v1/sales/{saleId}/reshard', {
    post: asAdmin(services, async (exchange, { userId: actor }) => {
      const { req, res, replies, param } = exchange;
      const saleId = param('saleId');
      const wrong = (detail: string): void => replies.problem(req, res, 'bad_request', { detail });
      if (!isSaleId(saleId)) return wrong('The sale id must be a whole number.');
      if (!promisesJson(req.headers)) return replies.problem(req, res, 'unsupported_media_type');
      const text = await new Promise<string | null>((resolve) => collectBody(req, resolve));
      if (text === null) return replies.problem(req, res, 'payload_too_large');
      const buckets = bucketsIn(text);
      if (buckets === null) return wrong(`Wrong: buckets ${message}.`);
      answer(exchange, await services.reshard(saleId, { actor, buckets }));
    }),
  });
}

function bucketsIn(text: string): number | null {
  try {
    return body.parse(JSON.parse(text)).buckets;
  } catch {
    return null;
  }
}

function answer({ req, res, replies }: Exchange, resharded: Resharded): void {
  const { outcome, ...facts } = resharded;
  if (outcome === 'resharded') return replies.json(req, res, 200, outcome, facts);
  if (outcome === 'not_found') return replies.problem(req, res, outcome);
  if (outcome === 'in_repair') return replies.problem(req, res, 'repairing');
  replies.problem(req, res, 'wrong_state', { detail: RESHARD_SENTENCES[outcome] });
}
