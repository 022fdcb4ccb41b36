import { z } from 'zod';
import type { HeaderSpec } from '../route.js';

/** Headers that only some sales ask for. */
const header = (name: string, pattern: RegExp, description: string): HeaderSpec => ({
  name,
  required: false,
  description: `${description}; \`${pattern.source}\``,
  schema: z.string(), // no pattern: where a sale asks for none, any value is accepted
});

const SIGNED = '; where the sale asks for signed requests';
export const SIGNATURE: readonly HeaderSpec[] = [
  header('Seckill-Key-Id', /^[A-Za-z0-9_-]{1,64}$/, `which key signed${SIGNED}`),
  header('Seckill-Timestamp', /^[0-9]{1,12}$/, `Unix time in seconds${SIGNED}`),
  header('Seckill-Nonce', /^[A-Za-z0-9_-]{16,64}$/, `new for every try${SIGNED}`),
  header('Seckill-Signature-Version', /^[12]$/, `1 where left out${SIGNED}`),
  header('Seckill-Signature', /^[A-Za-z0-9_-]{43}$/, `HMAC-SHA-256 of the request${SIGNED}`),
];
export const PURCHASE_TOKEN = header('Seckill-Purchase-Token', /^[!-~]+$/, 'where the sale asks for purchase tokens');
export const QUEUE_PASS = header('Seckill-Queue-Pass', /^[!-~]+$/, 'where the sale has a waiting room');
