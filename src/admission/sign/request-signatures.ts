import { OperationalError } from '../../core/errors.js';
import { sameText } from '../../core/hmac.js';
import { isId } from '../../core/ids.js';
import type { Clock } from '../../core/ports/clock.js';
import type { AdmissionMetrics } from '../../core/ports/admission-metrics.js';
import type { NonceStore } from '../../core/ports/admission-stores.js';
import { covers } from '../sales.js';
import { canonicalText, PATH_LENGTH_MAX, type CanonicalRequest } from './canonical-request.js';
import type { Keyring } from './keyring.js';
import type { SignRules } from './sign-rules.js';

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
