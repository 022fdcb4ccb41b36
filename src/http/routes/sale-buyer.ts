import type { Principal } from '../auth.js';
import { collectBody } from '../body.js';
import { Denied } from '../denied.js';
import { beginSignature, finishSignature } from '../purchase-door.js';
import type { HttpServices } from '../services.js';
import { buyerOf, keyOf, principalOf, type Exchange } from './router.js';

/**
 * The buyer who asks how something stands in a sale: his purchase, his place, his token. As buyerOf; and where the sale
 * asks for signatures, the request must have one.
 */
export async function saleBuyerOf(exchange: Exchange, services: HttpServices): Promise<Principal | null> {
  if (!services.entry.isOn) return principalOf(exchange, services);
  const head = beginSignature(exchange.req, exchange.param('saleId'), services);
  if (head instanceof Denied) return deny(exchange, head);
  const who = await buyerOf(exchange, 'status', services);
  if (who === null || head === null) return who;
  const body = await new Promise<string | null>((resolve) => collectBody(exchange.req, resolve));
  if (body === null) {
    exchange.replies.problem(exchange.req, exchange.res, 'payload_too_large');
    return null;
  }
  const { method, originalUrl: url } = exchange.req;
  const denied = await finishSignature({ method, url }, head, body, services);
  return denied === null ? who : deny(exchange, denied);
}

function deny({ req, res, replies }: Exchange, denied: Denied): null {
  replies.problem(req, res, denied.code, denied.parts(keyOf(req)));
  return null;
}
