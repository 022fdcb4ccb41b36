import { randomBytes } from 'node:crypto';
import { queueRules, type QueueRules } from '../../src/admission/queue/queue-rules.js';
import { QueuePasses } from '../../src/admission/queue/waiting-rooms.js';
import { PurchaseTokens } from '../../src/admission/sign/purchase-tokens.js';
import {
  RequestSignatures,
  signRules,
  type SignatureHeaders,
  type SignRules,
} from '../../src/admission/sign/request-signatures.js';
import { readKeyring } from '../../src/core/hmac.js';
import { Seals, type SealOf } from '../../src/admission/sign/seals.js';
import type { NonceStore, PurchaseTokenStore } from '../../src/core/ports/admission-stores.js';
import { systemClock } from '../../src/programs/system-clock.js';
import { noAdmissionMetrics as metrics } from '../../test/helpers/no-metrics.js';
import { signRequest } from '../../test/helpers/sign-request.js';
import { costOfCall, costWhileConcurrent, type LayerCost, type RedisCpu } from './cost.js';

const KEYS = 'bench:a-secret-of-the-bench-with-40-bytes-or-so';
const REQUEST = {
  method: 'POST',
  path: '/v1/sales/7/purchases',
  body: '{"quantity":1}',
  userId: 'u1',
  idempotencyKey: 'order-1',
};
const SALE_ID = '7';
const DAY_MS = 86_400_000;
/** Requests signed beforehand, and used in turn; a power of two. */
const PREPARED = 1 << 16;

export interface FrontCostParts {
  readonly nonces: NonceStore;
  readonly tokens: PurchaseTokenStore;
  readonly redisCpu: RedisCpu;
  readonly ms: number;
}

/** Signed requests: the head, the HMAC and the nonce; a forged one costs no question to Redis, a replayed one does. */
export async function signCosts({ nonces, redisCpu, ms }: FrontCostParts): Promise<LayerCost[]> {
  const keys = readKeyring(KEYS);
  const [key] = keys.values();
  const timestamp = String(Math.floor(Date.now() / 1000));
  const run = randomBytes(6).toString('hex');
  const signed = (place: number): SignatureHeaders => {
    const nonce = `${run}-${String(place).padStart(12, '0')}`;
    return signRequest('bench', key as NonNullable<typeof key>, { version: 2, ...REQUEST, timestamp, nonce });
  };
  const layer = (mode: SignRules['mode'], store: NonceStore): RequestSignatures => {
    const rules = signRules.parse({ mode, keys: ['bench'] });
    return new RequestSignatures({ rules: () => rules, keys, nonces: store, clock: systemClock, metrics });
  };
  const check = async (signatures: RequestSignatures, headers: SignatureHeaders): Promise<unknown> => {
    const head = signatures.begin(SALE_ID, headers);
    return head === null || typeof head === 'string' ? head : signatures.finish(head, REQUEST);
  };
  const prepared = Array.from({ length: PREPARED }, (_, place) => signed(place));
  const headersAt = (place: number): SignatureHeaders => prepared[place & (PREPARED - 1)] as SignatureHeaders;
  const off = layer('off', nonces);
  const offUs = costOfCall((place) => off.begin(SALE_ID, headersAt(place)));

  const on = layer('on', nonces);
  // Every nonce is asked for; after the first turn they are used, which costs Redis and us the same as a fresh one.
  const asked = await costWhileConcurrent((place) => check(on, headersAt(place)), { ms, redisCpu });
  const unsigned = costOfCall(() => on.begin(SALE_ID, {}));
  const forged = prepared.map((one) => ({ ...one, 'seckill-signature': 'A'.repeat(43) }));
  const invented = await costWhileConcurrent((place) => check(on, forged[place & (PREPARED - 1)] as SignatureHeaders), {
    ms,
  });
  const none = { inUs: null, redisUs: null };
  return [
    { name: 'signature, fresh or replayed', offUs, inUs: asked.ownUs, refusedUs: asked.ownUs, redisUs: asked.redisUs },
    { name: 'signature, not signed', offUs, ...none, refusedUs: unsigned },
    { name: 'signature, forged', offUs, ...none, refusedUs: invented.ownUs },
  ];
}

/** One-time purchase tokens: a true one is spent in Redis. */
export async function tokenCosts({ tokens: store, redisCpu, ms }: FrontCostParts): Promise<LayerCost[]> {
  const seals = sealsOfBench();
  const saleId = `9${Date.now()}`; // spent tokens of an earlier run are none of this one
  const untilMs = Date.now() + DAY_MS;
  const layer = (mode: SignRules['mode']): PurchaseTokens => {
    const rules = signRules.parse({ tokens: { mode } }).tokens;
    return new PurchaseTokens({ rules: () => rules, seals, store, clock: systemClock, metrics });
  };
  const buyers = Array.from({ length: PREPARED }, (_, place) => {
    const purchase = { saleId, userId: `u${place}`, requestId: `r${place}` };
    return { purchase, token: seals.seal({ kind: 'purchase-token', ...purchase }, [untilMs]) };
  });
  const at = (place: number) => buyers[place & (PREPARED - 1)] as (typeof buyers)[number];
  const open = (tokens: PurchaseTokens, { userId }: { readonly userId: string }, token: string) =>
    tokens.begin(saleId, token) ?? tokens.open(saleId, userId, token);
  const ask = (tokens: PurchaseTokens, place: number) => {
    const { purchase, token } = at(place);
    const endsAtMs = open(tokens, purchase, token);
    return typeof endsAtMs === 'number' ? tokens.redeem({ ...purchase, address: '127.0.0.1' }, endsAtMs) : endsAtMs;
  };
  const [off, on] = [layer('off'), layer('on')];
  const offUs = costOfCall((place) => ask(off, place));
  const spent = await costWhileConcurrent(async (place) => await ask(on, place), { ms, redisCpu });
  const forged = costOfCall((place) => open(on, at(place).purchase, at(place + 1).token));
  return [{ name: 'purchase token', offUs, inUs: spent.ownUs, refusedUs: forged, redisUs: spent.redisUs }];
}

/** The pass of the waiting room: a seal, checked without a call. */
export function passCost(): LayerCost {
  const seals = sealsOfBench();
  const untilMs = Date.now() + DAY_MS;
  const layer = (mode: QueueRules['mode']): QueuePasses => {
    const rules = queueRules.parse({ mode });
    return new QueuePasses({ rules: () => rules, seals, clock: systemClock, metrics });
  };
  const passes = Array.from({ length: PREPARED }, (_, place) => {
    const pass: SealOf = { kind: 'queue-pass', saleId: SALE_ID, userId: `u${place}` };
    return { userId: pass.userId, pass: seals.seal(pass, [untilMs]) };
  });
  const at = (place: number) => passes[place & (PREPARED - 1)] as (typeof passes)[number];
  const [off, on] = [layer('off'), layer('on')];
  return {
    name: 'pass of the waiting room',
    offUs: costOfCall((place) => off.check(SALE_ID, at(place).userId, at(place).pass)),
    inUs: costOfCall((place) => on.check(SALE_ID, at(place).userId, at(place).pass)),
    refusedUs: costOfCall((place) => on.check(SALE_ID, at(place).userId, at(place + 1).pass)),
    redisUs: null,
  };
}

const sealsOfBench = (): Seals => new Seals(readKeyring(KEYS));
