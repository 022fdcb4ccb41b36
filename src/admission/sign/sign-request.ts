import { canonicalText, type CanonicalRequest } from './canonical-request.js';
import type { HmacSha256 } from '../../core/hmac.js';

/**
 * The headers of a signed request, as a caller makes them.
 * @throws RangeError for a request that cannot be signed: not ASCII, or too long
 */
export function signRequest(keyId: string, key: HmacSha256, request: CanonicalRequest): Record<string, string> {
  const text = canonicalText(request);
  const signature = key.sign(text, text.length);
  if (signature === null) throw new RangeError('only a short ASCII address can be signed');
  return {
    'seckill-key-id': keyId,
    'seckill-timestamp': request.timestamp,
    'seckill-nonce': request.nonce,
    'seckill-signature': signature,
  };
}
