import { createHmac } from 'node:crypto';

/** The header `Payment-Signature` for a body, as a payment provider makes it. */
export function signWebhook(secret: string, body: string, atMs: number): string {
  const seconds = String(Math.floor(atMs / 1000));
  const signature = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
  return `t=${seconds},v1=${signature}`;
}
