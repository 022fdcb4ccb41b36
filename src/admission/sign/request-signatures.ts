import { hash } from 'node:crypto';
import { z } from 'zod';
import { OperationalError } from '../../core/errors.js';
import { sameText, type Keyring } from '../../core/hmac.js';
import { isId } from '../../core/ids.js';
import type { NonceStore } from '../../core/ports/admission-stores.js';
import type { Clock } from '../../core/ports/clock.js';
import { mode, modeFor, saleScope } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';

/** How to treat buyers while Redis, which remembers nonces and tokens, does not answer. */
const whenDown = z.enum(['refuse', 'allow']);

const tokenRules = z.strictObject({
  mode: mode.default('off'),
  sales: saleScope.default('all'),
  /** How long before the opening the first tokens are issued, ms. */
  leadMs: z.int().min(0).max(86_400_000).default(300_000),
  /** Lifetime of a token, ms. After that, another buyer may get a token in its place. */
  lifeMs: z.int().min(1000).max(86_400_000).default(900_000),
  /** Number of valid tokens, as a multiple of the stock: enough for the winners, too few for most scripts. */
  perUnit: z.number().min(1).max(1000).default(3),
  /** Maximum number of tokens per buyer, one after the other. A buyer who lets all lapse gets no more. */
  perBuyer: z.int().min(1).max(1000).default(3),
  /** Maximum number of unredeemed tokens of one address. Null: no limit. */
  perAddress: z.int().min(1).max(100_000).nullable().default(100),
  down: whenDown.default('refuse'),
});

export const signRules = z
  .strictObject({
    mode: mode.default('off'),
    sales: saleScope.default('all'),
    /** Ids of the accepted keys. Their secrets are in the configuration. */
    keys: z.array(z.string().refine(isId, 'must be a key id')).max(64).default([]),
    /** Accepted versions of signatures. Version 1 covers neither the buyer nor the Idempotency-Key. */
    versions: z
      .array(z.literal([1, 2]))
      .min(1)
      .max(2)
      .default([1, 2]),
    /** The largest accepted difference between the time of a request and ours, in either direction. */
    windowMs: z.int().min(1000).max(3_600_000).default(300_000),
    down: whenDown.default('refuse'),
    tokens: tokenRules.prefault({}),
  })
  .refine(({ mode, keys }) => mode !== 'on' || keys.length > 0, {
    error: 'must name a key, or nobody can sign',
    path: ['keys'],
  });

export type SignRules = z.infer<typeof signRules>;
export type TokenRules = SignRules['tokens'];

type SignatureVersion = 1 | 2;

export interface CanonicalRequest {
  readonly version: SignatureVersion;
  readonly method: string;
  /** The target in the request line, including the query. */
  readonly path: string;
  /** The body as it was sent. */
  readonly body: string;
  /** Unix seconds, as in the header. */
  readonly timestamp: string;
  readonly nonce: string;
  /** The user in the token. Signed since version 2. */
  readonly userId: string;
  /** The header as sent, or empty. Signed since version 2. */
  readonly idempotencyKey: string;
}

type SentRequest = Pick<CanonicalRequest, 'method' | 'path' | 'body' | 'userId' | 'idempotencyKey'>;

/** Maximum length of a target that can be signed. No target of this API comes near it. */
const PATH_LENGTH_MAX = 1024;

/**
 * The signed text: six lines, or eight in version 2, all but the last with a newline. No part can contain a newline, so
 * different requests have different texts.
 */
export function canonicalText(request: CanonicalRequest): string {
  const { version, method, path, body, timestamp, nonce, userId, idempotencyKey } = request;
  const lines = `${method}\n${path}\n${hash('sha256', body, 'hex')}\n${timestamp}\n${nonce}`;
  if (version === 1) return `SECKILL-HMAC-SHA256\n${lines}`;
  return `SECKILL-HMAC-SHA256-V2\n${lines}\n${userId}\n${idempotencyKey}`;
}

/** The headers of a signature, well-formed and recent. The signature is checked once the body has arrived. */
export interface SignatureHead {
  readonly version: SignatureVersion;
  readonly keyId: string;
  readonly timestamp: string;
  readonly nonce: string;
  readonly signature: string;
}

/** `unavailable` means that it is unknown whether the nonce was used before. */
export type SignatureRefusal = 'bad_signature' | 'unavailable';

/** The reason, for the metric. A client sees only `bad_signature`. */
type Flaw =
  | 'not_signed'
  | 'malformed'
  | 'old_version'
  | 'stale'
  | 'unknown_key'
  | 'forged'
  | 'nonce_used'
  | 'outdated'
  | 'unavailable';

export type SignatureHeaders = Readonly<Record<string, string | string[] | undefined>>;

export const TIMESTAMP = /^[0-9]{1,12}$/;
/** Long enough that two nonces are never equal by chance. */
export const NONCE = /^[A-Za-z0-9_-]{16,64}$/;
/** HMAC-SHA-256 in base64url. */
export const SIGNATURE = /^[A-Za-z0-9_-]{43}$/;
/** Largest difference between our own processes. A request that is stale for one must not be fresh for another. */
const CLOCK_SKEW_MS = 5000;

interface SignatureParts {
  readonly rules: () => SignRules;
  /** Of all permitted signers. The rules say which are accepted now. */
  readonly keys: Keyring;
  readonly nonces: NonceStore;
  readonly clock: Clock;
  readonly metrics: AdmissionMetrics;
}

/**
 * Accepts a request only if it was signed recently, with the secret of a key, and not used before. `begin` is cheap and
 * needs no body. `finish` computes the HMAC, and calls Redis only for valid signatures.
 */
export class RequestSignatures {
  readonly #parts: SignatureParts;

  constructor(parts: SignatureParts) {
    this.#parts = parts;
  }

  /** Whether requests about this sale are refused if they have no signature. */
  areNeeded(saleId: string): boolean {
    return modeFor(this.#parts.rules(), saleId) === 'on';
  }

  /** @returns the value for `finish`, a refusal, or null if no signature is needed */
  begin(saleId: string, headers: SignatureHeaders): SignatureHead | 'bad_signature' | null {
    const rules = this.#parts.rules();
    const mode = modeFor(rules, saleId);
    if (mode === 'off') return null;
    const head = this.#read(headers, rules);
    if (typeof head !== 'string') return head;
    return this.#refuses(head, mode) ? 'bad_signature' : null;
  }

  /** Checks the signature and uses up its nonce. Null to proceed. Never rejects for a fault of Redis. */
  async finish(head: SignatureHead, request: SentRequest): Promise<SignatureRefusal | null> {
    const rules = this.#parts.rules();
    if (rules.mode === 'off') return null; // switched off while the body arrived
    const flaw = this.#isSigned(head, request) ? await this.#takeNonce(head, rules) : 'forged';
    if (flaw === null || !this.#refuses(flaw, rules.mode)) return null;
    return flaw === 'unavailable' ? flaw : 'bad_signature';
  }

  #read(headers: SignatureHeaders, { keys, windowMs, versions }: SignRules): SignatureHead | Flaw {
    const { 'seckill-key-id': keyId, 'seckill-timestamp': timestamp } = headers;
    const { 'seckill-nonce': nonce, 'seckill-signature': signature } = headers;
    if (signature === undefined) return 'not_signed';
    const version = versionOf(headers['seckill-signature-version']);
    if (version === null || !isId(keyId) || !matches(TIMESTAMP, timestamp)) return 'malformed';
    if (!matches(NONCE, nonce) || !matches(SIGNATURE, signature)) return 'malformed';
    if (!versions.includes(version)) return 'old_version';
    const ageMs = this.#parts.clock.nowMs() - Number(timestamp) * 1000;
    if (Math.abs(ageMs) > windowMs) return 'stale';
    if (!keys.includes(keyId)) return 'unknown_key';
    return { version, keyId, timestamp, nonce, signature };
  }

  #isSigned(head: SignatureHead, request: SentRequest): boolean {
    const key = this.#parts.keys.get(head.keyId); // a rule may name a key that this process does not have
    if (key === undefined || request.path.length > PATH_LENGTH_MAX) return false;
    return sameText(key.sign(canonicalText({ ...request, ...head })), head.signature);
  }

  async #takeNonce({ keyId, nonce, timestamp }: SignatureHead, { windowMs, down }: SignRules): Promise<Flaw | null> {
    try {
      const lifeMs = 2 * windowMs + CLOCK_SKEW_MS; // as long as the timestamp may be valid
      const taken = await this.#parts.nonces.take(keyId, nonce, { lifeMs, signedAtMs: Number(timestamp) * 1000 });
      if (taken === 'fresh') return null;
      return taken === 'used' ? 'nonce_used' : taken;
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

/** Reads the version of a signature. Version 1 has no header. */
function versionOf(header: string | string[] | undefined): SignatureVersion | null {
  if (header === undefined || header === '1') return 1;
  return header === '2' ? 2 : null;
}

const matches = (shape: RegExp, value: string | string[] | undefined): value is string =>
  typeof value === 'string' && shape.test(value);
