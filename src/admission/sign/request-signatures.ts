import { z } from 'zod';
import { isId } from '../../core/ids.js';
import { mode, saleScope, covers } from '../layer.js';
import { hash } from 'node:crypto';
import { type HmacSha256, sameText } from '../../core/hmac.js';
import { OperationalError } from '../../core/errors.js';
import type { Clock } from '../../core/ports/clock.js';
import type { AdmissionMetrics } from '../../core/ports/admission-metrics.js';
import type { NonceStore } from '../../core/ports/admission-stores.js';
import type { Keyring } from './seals.js';

/** What to do with a buyer while the server that remembers does not answer. */
const whenDown = z.enum(['refuse', 'allow']);

/** One-time purchase tokens. */
const tokenRules = z.strictObject({
  mode: mode.default('off'),
  sales: saleScope.default('all'),
  /** Tokens are handed out from so long before the sale opens. */
  leadMs: z.int().min(0).max(86_400_000).default(300_000),
  /** A token is good for so long; whoever lets it end may fetch it again. */
  lifeMs: z.int().min(1000).max(86_400_000).default(900_000),
  /** Tokens handed out, as a multiple of the stock: most buyers have one, most scripts come too late. */
  perUnit: z.number().min(1).max(1000).default(3),
  down: whenDown.default('refuse'),
});

/** Signed requests, and purchase tokens. Everything is off unless said otherwise. */
export const signRules = z
  .strictObject({
    mode: mode.default('off'),
    sales: saleScope.default('all'),
    /** Ids of the keys that are believed; their secrets are in the configuration. */
    keys: z.array(z.string().refine(isId, 'must be a key id')).max(64).default([]),
    /** How far the time of a request may be from ours, either way. */
    windowMs: z.int().min(1000).max(3_600_000).default(300_000),
    down: whenDown.default('refuse'),
    tokens: tokenRules.prefault({}),
  })
  .refine(({ mode, keys }) => mode !== 'on' || keys.length > 0, {
    error: 'must name a key: without one nobody can sign',
    path: ['keys'],
  });

export type SignRules = z.infer<typeof signRules>;
export type TokenRules = SignRules['tokens'];

/** What a signature stands for. */
export interface CanonicalRequest {
  readonly method: string;
  /** The target as it stands in the request line, query included. */
  readonly path: string;
  /** As it was sent. */
  readonly body: string;
  /** Unix time in seconds, as the header has it. */
  readonly timestamp: string;
  readonly nonce: string;
}

/** Longer addresses are not signed; none of this API comes near. */
export const PATH_LENGTH_MAX = 1024;
/** Scheme, method, hash, time stamp and nonce, with room. */
export const CANONICAL_BYTES_MAX = PATH_LENGTH_MAX + 256;

/**
 * The text under a signature: six lines that end with a newline each but for the last. No part can hold a newline, so
 * two requests never have the same text.
 */
export function canonicalText({ method, path, body, timestamp, nonce }: CanonicalRequest): string {
  return `SECKILL-HMAC-SHA256\n${method}\n${path}\n${hash('sha256', body, 'hex')}\n${timestamp}\n${nonce}`;
}

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

export interface RequestSignaturesParts {
  readonly rules: () => SignRules;
  /** Of everybody who may sign; the rules say which of them count now. */
  readonly keys: Keyring;
  readonly nonces: NonceStore;
  readonly clock: Clock;
  readonly metrics: Pick<AdmissionMetrics, 'refused'>;
}

/** What the four headers say, well-formed and in time; whether it is true only the body can tell. */
export interface SignatureHead {
  readonly keyId: string;
  readonly timestamp: string;
  readonly nonce: string;
  readonly signature: string;
}

/** `unavailable`: nobody can say whether the nonce was used. */
export type SignatureRefusal = 'bad_signature' | 'unavailable';

/** Why, for the counter; a caller without the secret hears `bad_signature` only. */
type Flaw = 'not_signed' | 'malformed' | 'stale' | 'unknown_key' | 'forged' | 'nonce_used' | 'unavailable';

export type SignatureHeaders = Readonly<Record<string, string | string[] | undefined>>;

const TIMESTAMP = /^[0-9]{1,12}$/;
/** Shorter ones meet by chance. */
const NONCE = /^[A-Za-z0-9_-]{16,64}$/;
/** HMAC-SHA-256 in base64url. */
const SIGNATURE = /^[A-Za-z0-9_-]{43}$/;
/** The clocks of our own processes may differ so much: what is stale for one must not be fresh for another. */
const CLOCK_SKEW_MS = 5000;

/**
 * Believes a request only if somebody who knows the secret of a key signed it, now, and for one use. The cheap half,
 * `begin`, needs no body; `finish` has the HMAC, and only what is truly signed costs a question to Redis.
 */
export class RequestSignatures {
  readonly #parts: RequestSignaturesParts;

  constructor(parts: RequestSignaturesParts) {
    this.#parts = parts;
  }

  /** @returns what to give to `finish`, a refusal, or null: nothing more is asked of this request */
  begin(saleId: string, headers: SignatureHeaders): SignatureHead | 'bad_signature' | null {
    const rules = this.#parts.rules();
    if (rules.mode === 'off' || !covers(rules.sales, saleId)) return null;
    const head = this.#read(headers, rules);
    if (typeof head !== 'string') return head;
    return this.#refuses(head, rules.mode) ? 'bad_signature' : null;
  }

  /** Null: let it in. Never rejects for a fault of Redis. */
  async finish(
    head: SignatureHead,
    request: Pick<CanonicalRequest, 'method' | 'path' | 'body'>,
  ): Promise<SignatureRefusal | null> {
    const rules = this.#parts.rules();
    if (rules.mode === 'off') return null; // switched off while the body came
    const flaw = this.#isSigned(head, request) ? await this.#takeNonce(head, rules) : 'forged';
    if (flaw === null || !this.#refuses(flaw, rules.mode)) return null;
    return flaw === 'unavailable' ? flaw : 'bad_signature';
  }

  #read(headers: SignatureHeaders, { keys, windowMs }: SignRules): SignatureHead | Flaw {
    const { 'seckill-key-id': keyId, 'seckill-timestamp': timestamp } = headers;
    const { 'seckill-nonce': nonce, 'seckill-signature': signature } = headers;
    if (signature === undefined) return 'not_signed';
    if (!isId(keyId) || !matches(TIMESTAMP, timestamp)) return 'malformed';
    if (!matches(NONCE, nonce) || !matches(SIGNATURE, signature)) return 'malformed';
    const ageMs = this.#parts.clock.nowMs() - Number(timestamp) * 1000;
    if (Math.abs(ageMs) > windowMs) return 'stale';
    if (!keys.includes(keyId)) return 'unknown_key';
    return { keyId, timestamp, nonce, signature };
  }

  #isSigned(head: SignatureHead, request: Pick<CanonicalRequest, 'method' | 'path' | 'body'>): boolean {
    const key = this.#parts.keys.get(head.keyId); // a rule may name a key that this process does not have
    if (key === undefined || request.path.length > PATH_LENGTH_MAX) return false;
    const text = canonicalText({ ...request, ...head });
    const expected = key.sign(text, text.length);
    return expected !== null && sameText(expected, head.signature);
  }

  async #takeNonce({ keyId, nonce }: SignatureHead, { windowMs, down }: SignRules): Promise<Flaw | null> {
    try {
      const lifeMs = 2 * windowMs + CLOCK_SKEW_MS; // from the first moment at which its time stamp is good to the last
      return (await this.#parts.nonces.take(keyId, nonce, lifeMs)) === 'fresh' ? null : 'nonce_used';
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      return down === 'allow' ? null : 'unavailable';
    }
  }

  #refuses(flaw: Flaw, mode: 'dry_run' | 'on'): boolean {
    this.#parts.metrics.refused('sign', flaw, mode);
    return mode === 'on';
  }
}

const matches = (shape: RegExp, value: string | string[] | undefined): value is string =>
  typeof value === 'string' && shape.test(value);
