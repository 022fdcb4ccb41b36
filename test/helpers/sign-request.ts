import { canonicalText, type CanonicalRequest } from '../../src/admission/sign/request-signatures.js';
import type { HmacKey } from '../../src/core/hmac.js';

/** Returns the headers of a signed request, as a client makes them. */
export const signRequest = (keyId: string, key: HmacKey, request: CanonicalRequest): Record<string, string> => ({
  ...(request.version === 1 ? {} : { 'seckill-signature-version': String(request.version) }),
  'seckill-key-id': keyId,
  'seckill-timestamp': request.timestamp,
  'seckill-nonce': request.nonce,
  'seckill-signature': key.sign(canonicalText(request)),
});
