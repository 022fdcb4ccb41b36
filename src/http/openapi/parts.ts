import { PROBLEM_TYPE, PROBLEMS, type ProblemCode } from '../problem.js';

export const text = { type: 'string' } as const;
export const time = { type: 'string', format: 'date-time' } as const;
export const count = { type: 'integer', minimum: 0 } as const;
export const id = { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' } as const;
export const paymentId = { type: 'string', pattern: '^[A-Za-z0-9_-][A-Za-z0-9._:~=+-]{0,63}$' } as const;
export const orNull = (schema: { readonly type: string }): object => ({ ...schema, type: [schema.type, 'null'] });

export const object = (properties: Record<string, object>, required = Object.keys(properties)): object => ({
  type: 'object',
  ...{ properties, required },
});
export const json = (description: string, schema: object): object => ({
  description,
  content: { 'application/json': { schema } },
});
export const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
export const body = (schema: object, required: boolean): object => ({
  required,
  content: { 'application/json': { schema } },
});

/** The whole answer, or as much of it as is given while there is too much to do. */
export const readable = (description: string, schema: string): object =>
  json(`${description}; less of it, marked by \`degraded\`, while there is too much to do`, {
    anyOf: [ref(schema), ref('Degraded')],
  });

/** One response per status; its description names every code that comes with it. */
export function problems(...codes: ProblemCode[]): Record<string, object> {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) {
    const { status } = PROBLEMS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const content = { [PROBLEM_TYPE]: { schema: ref('Problem') } };
  return Object.fromEntries(
    [...byStatus].map(([status, words]) => [String(status), { description: words.join(', '), content }]),
  );
}

export const parameter = (
  place: 'path' | 'query' | 'header',
  name: string,
  schema: object,
  required = true,
): object => ({
  ...{ name, in: place, required, schema },
});
const SIGNED = '; where the sale asks for signed requests';
/** A header that only some sales ask for. */
const asked = (name: string, pattern: string, description: string): object => ({
  ...{ name, in: 'header', required: false, schema: { type: 'string', pattern }, description },
});
export const SIGNATURE = [
  asked('Seckill-Key-Id', '^[A-Za-z0-9_-]{1,64}$', `which key signed${SIGNED}`),
  asked('Seckill-Timestamp', '^[0-9]{1,12}$', `Unix time in seconds${SIGNED}`),
  asked('Seckill-Nonce', '^[A-Za-z0-9_-]{16,64}$', `new for every try${SIGNED}`),
  asked('Seckill-Signature', '^[A-Za-z0-9_-]{43}$', `HMAC-SHA-256 of the request${SIGNED}`),
] as const;
export const PURCHASE_TOKEN = asked('Seckill-Purchase-Token', '^[!-~]+$', 'where the sale asks for purchase tokens');
export const QUEUE_PASS = asked('Seckill-Queue-Pass', '^[!-~]+$', 'where the sale has a waiting room');
export const SALE_ID = parameter('path', 'saleId', { type: 'string', pattern: '^[1-9][0-9]{0,17}$' });
export const BEARER = [{ bearer: [] }];
export const COMMON = ['bad_request', 'internal', 'unavailable'] as const;
/** A buyer may be refused by the entry, an admin without the role by the desk. */
export const BUYER = ['unauthorized', 'denied', 'rate_limited', ...COMMON] as const;
/** What a sale may ask for as well: a signed request, by four headers. */
export const SALE_BUYER = ['bad_signature', ...BUYER] as const;
export const ADMIN = ['unauthorized', 'role_needed', ...COMMON] as const;

export const filterBy = (name: string, schema: object): object => parameter('query', name, schema, false);
export const ROWS = filterBy('limit', { type: 'integer', minimum: 1, maximum: 200, default: 50 });
export const list = (items: string): object => ({ type: 'array', items: ref(items) });
