import { z } from 'zod';
import { NONCE, SIGNATURE as SIGNATURE_SHAPE, TIMESTAMP } from '../../admission/sign/request-signatures.js';
import { ID } from '../../core/ids.js';
import type { HeaderSpec } from '../route.js';

/** Headers that only some sales require. */
const header = (name: string, pattern: RegExp, description: string): HeaderSpec => ({
  name,
  required: false,
  description: `${description}; \`${pattern.source}\``,
  schema: z.string(), // no pattern, because a sale that does not require the header accepts any value
});

const SIGNED = '; if the sale requires signed requests';
export const SIGNATURE: readonly HeaderSpec[] = [
  header('Seckill-Key-Id', ID, `id of the key that signed${SIGNED}`),
  header('Seckill-Timestamp', TIMESTAMP, `Unix time in seconds${SIGNED}`),
  header('Seckill-Nonce', NONCE, `new for each attempt${SIGNED}`),
  header('Seckill-Signature-Version', /^[12]$/, `1 if omitted${SIGNED}`),
  header('Seckill-Signature', SIGNATURE_SHAPE, `HMAC-SHA-256 of the request${SIGNED}`),
];
export const PURCHASE_TOKEN = header('Seckill-Purchase-Token', /^[!-~]+$/, 'if the sale requires purchase tokens');
export const QUEUE_PASS = header('Seckill-Queue-Pass', /^[!-~]+$/, 'if the sale has a waiting room');
