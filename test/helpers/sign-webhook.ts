import { createHmac } from 'node:crypto';

/** Returns the `Payment-Signature` header of a body, as a payment provider makes it. */
export function signWebhook(secret: string, body: string, atMs: number): string {
  const seconds = String(Math.floor(atMs / 1000));
  const signature = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
  return `t=${seconds},v1=${signature}`;
}
