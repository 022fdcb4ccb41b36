import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Of the header `t=<unix seconds>,v1=<hex of HMAC-SHA-256 over "<t>.<body>">`. There may be several `v1`: a provider that changes
 * its secret signs with both for a while. Parts with other names, such as Stripe's `v0`, say nothing.
 */
type SignatureVerdict = 'good' | 'invalid' | 'stale';

export interface WebhookVerifier {
  /** Whether the header alone shows that no body can be good, so that the body need not be read. */
  refuses(header: string | string[] | undefined): boolean;
  /** Checks the signature first: `stale` is only said of messages that were signed with a secret. */
  verify(header: string | string[] | undefined, body: string): SignatureVerdict;
}

export interface WebhookVerifierOptions {
  /** Unix time in ms. */
  readonly nowMs?: () => number;
}

/** How far the time of a signature may be from ours, either way: an older message is a replay. */
export const SIGNATURE_LIFE_MS = 300_000;
const TIME = /^t=([0-9]{1,12})$/;
const SIGNATURE = /^v1=([0-9a-f]{64})$/i;
/** A provider sends two or three signatures; each costs an HMAC here. */
const PARTS_MAX = 8;

/** @param secrets any of these may have signed: while the provider changes to a new one, there are two */
export function createWebhookVerifier(
  secrets: readonly string[],
  options: WebhookVerifierOptions = {},
): WebhookVerifier {
  const nowMs = options.nowMs ?? Date.now;
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

/** Null: it is not of the form above. */
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
