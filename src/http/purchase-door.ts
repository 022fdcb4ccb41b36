import type { IncomingMessage } from 'node:http';
import type { SignatureHead } from '../admission/sign/request-signatures.js';
import { NO_PASS, NO_TOKEN, NOT_KNOWN, NOT_SIGNED, type Denied } from './denied.js';
import type { HttpServices } from './services.js';

export type SignatureServices = Pick<HttpServices, 'signatures'>;
export type PurchaseDoorServices = SignatureServices & Pick<HttpServices, 'passes' | 'tokens'>;

/** A purchase whose buyer is known. */
interface Asking {
  readonly req: IncomingMessage;
  readonly saleId: string;
  readonly userId: string;
  readonly requestId: string;
}

/** The half of a signature that needs no body. Null: this sale asks for none. */
export function beginSignature(
  { headers }: IncomingMessage,
  saleId: string,
  { signatures }: SignatureServices,
): SignatureHead | Denied | null {
  const head = signatures.begin(saleId, headers);
  return head === 'bad_signature' ? NOT_SIGNED : head;
}

/** The other half: is it true, and is it new? Null: let it in. */
export async function finishSignature(
  { method = '', url: path = '' }: Pick<IncomingMessage, 'method' | 'url'>,
  head: SignatureHead,
  body: string,
  { signatures }: SignatureServices,
): Promise<Denied | null> {
  const refusal = await signatures.finish(head, { method, path, body });
  if (refusal === null) return null;
  return refusal === 'unavailable' ? NOT_KNOWN : NOT_SIGNED;
}

/** Whether the buyer comes from the waiting room, where there is one. Null: let him in. */
export function checkPass({ req, saleId, userId }: Asking, { passes }: PurchaseDoorServices): Denied | null {
  return passes.check(saleId, userId, req.headers['seckill-queue-pass']) === null ? null : NO_PASS;
}

/** What may need a question to Redis comes last: the signature, then the purchase token. Null: let him in. */
export async function vouch(
  asking: Asking,
  head: SignatureHead | null,
  body: string,
  services: PurchaseDoorServices,
): Promise<Denied | null> {
  const forged = head === null ? null : await finishSignature(asking.req, head, body, services);
  if (forged !== null) return forged;
  const { saleId, userId, requestId, req } = asking;
  const refusal = await services.tokens.check({ saleId, userId, requestId }, req.headers['seckill-purchase-token']);
  if (refusal === null) return null;
  return refusal === 'unavailable' ? NOT_KNOWN : NO_TOKEN;
}
