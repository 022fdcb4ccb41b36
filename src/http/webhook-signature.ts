import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Of the header `t=<unix seconds>,v1=<hex of HMAC-SHA-256 over "<t>.<body>">`. There may be several `v1`: a provider that changes
 * its secret signs with both for a while. Parts with other names, such as Stripe's `v0`, say nothing.
 */
type SignatureVerdict = 'good' | 'invalid' | 'stale';

export interface WebhookVerifier {
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
    verify(header, body) {
      const parts = typeof header === 'string' ? header.split(',', PARTS_MAX + 1).map((part) => part.trim()) : [];
      const times = found(TIME, parts);
      const [seconds] = times;
      if (seconds === undefined || times.length > 1 || parts.length > PARTS_MAX) return 'invalid';
      const given = found(SIGNATURE, parts).map((hex) => Buffer.from(hex, 'hex'));
      const expected = given.length === 0 ? [] : secrets.map((secret) => hmac(secret, seconds, body));
      if (!given.some((one) => expected.some((other) => timingSafeEqual(one, other)))) return 'invalid';
      return Math.abs(nowMs() - Number(seconds) * 1000) > SIGNATURE_LIFE_MS ? 'stale' : 'good';
    },
  };
}

const found = (pattern: RegExp, parts: readonly string[]): string[] =>
  parts.map((part) => pattern.exec(part)?.[1]).filter((value) => value !== undefined);

const hmac = (secret: string, seconds: string, body: string): Buffer =>
  createHmac('sha256', secret).update(`${seconds}.${body}`).digest();
