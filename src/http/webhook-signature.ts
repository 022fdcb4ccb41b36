import { createHmac, timingSafeEqual } from 'node:crypto';

/** Of the header `Payment-Signature: t=<unix seconds>,v1=<hex of HMAC-SHA-256 over "<t>.<body>">`. */
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
const SHAPE = /^t=([0-9]{1,12}),v1=([0-9a-f]{64})$/;

/** @param secrets any of these may have signed: while the provider changes to a new one, there are two */
export function createWebhookVerifier(
  secrets: readonly string[],
  options: WebhookVerifierOptions = {},
): WebhookVerifier {
  const nowMs = options.nowMs ?? Date.now;
  return {
    verify(header, body) {
      const [, seconds, given] = (typeof header === 'string' && SHAPE.exec(header)) || [];
      if (seconds === undefined || given === undefined) return 'invalid';
      const signature = Buffer.from(given, 'hex');
      if (!secrets.some((secret) => timingSafeEqual(hmac(secret, seconds, body), signature))) return 'invalid';
      return Math.abs(nowMs() - Number(seconds) * 1000) > SIGNATURE_LIFE_MS ? 'stale' : 'good';
    },
  };
}

const hmac = (secret: string, seconds: string, body: string): Buffer =>
  createHmac('sha256', secret).update(`${seconds}.${body}`).digest();
