import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * The result for a header `t=<unix seconds>,v1=<hex of HMAC-SHA-256 over "<t>.<body>">`. A header may contain several `v1`
 * parts, because a provider that changes its secret signs with both secrets for a while. Other parts, such as Stripe's
 * `v0`, are ignored.
 */
type SignatureVerdict = 'good' | 'invalid' | 'stale';

export interface WebhookVerifier {
  /** Whether the header alone shows that no body can be valid, so that the body need not be read. */
  refuses(header: string | string[] | undefined): boolean;
  /** Checks the signature first, so only a correctly signed message can be `stale`. */
  verify(header: string | string[] | undefined, body: string): SignatureVerdict;
}

/** The largest accepted difference between the time of a signature and ours. An older message is a replay. */
export const SIGNATURE_LIFE_MS = 300_000;
const TIME = /^t=([0-9]{1,12})$/;
const SIGNATURE = /^v1=([0-9a-f]{64})$/i;
/** A provider sends two or three signatures. Each costs us an HMAC. */
const PARTS_MAX = 8;

/** @param secrets the accepted secrets. There are two while the provider changes to a new secret */
export function createWebhookVerifier(secrets: readonly string[], nowMs = Date.now): WebhookVerifier {
  return {
    refuses: (header) => readHeader(header) === null,
    verify(header, body) {
      const head = readHeader(header);
      if (head === null) return 'invalid';
      const expected = secrets.map((secret) => hmac(secret, head.seconds, body));
      if (!head.given.some((one) => expected.some((other) => timingSafeEqual(one, other)))) return 'invalid';
      return Math.abs(nowMs() - Number(head.seconds) * 1000) > SIGNATURE_LIFE_MS ? 'stale' : 'good';
    },
  };
}

/** Signs a message of ours in the same format, once with each secret. */
export function signatureOf(secrets: readonly string[], body: string, nowMs: number): string {
  const seconds = String(Math.floor(nowMs / 1000));
  return [`t=${seconds}`, ...secrets.map((secret) => `v1=${hmac(secret, seconds, body).toString('hex')}`)].join();
}

/** Returns null if the header does not have the format above. */
function readHeader(header: string | string[] | undefined): { seconds: string; given: readonly Buffer[] } | null {
  const parts = typeof header === 'string' ? header.split(',', PARTS_MAX + 1).map((part) => part.trim()) : [];
  const [seconds, ...more] = found(TIME, parts);
  const given = found(SIGNATURE, parts).map((hex) => Buffer.from(hex, 'hex'));
  if (seconds === undefined || more.length > 0 || parts.length > PARTS_MAX || given.length === 0) return null;
  return { seconds, given };
}

const found = (pattern: RegExp, parts: readonly string[]): string[] =>
  parts.map((part) => pattern.exec(part)?.[1]).filter((value) => value !== undefined);

const hmac = (secret: string, seconds: string, body: string): Buffer =>
  createHmac('sha256', secret).update(`${seconds}.${body}`).digest();
