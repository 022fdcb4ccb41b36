import { createHmac } from 'node:crypto';

/** The answer to a request. */
export interface Reply {
  readonly status: number;
  /** The code of a problem. Empty after success. */
  readonly code: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Ask {
  readonly method?: 'GET' | 'POST' | 'PUT';
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly timeoutMs?: number;
}

const ANSWER_TIMEOUT_MS = 10_000;

/** Sends one request. @returns null if no answer came */
export async function ask(
  url: string,
  { method = 'GET', token, headers, body, timeoutMs }: Ask = {},
): Promise<Reply | null> {
  try {
    const response = await fetch(url, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs ?? ANSWER_TIMEOUT_MS),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    return { status: response.status, code: response.ok ? '' : String(answer.code), body: answer };
  } catch {
    return null; // no listener, a broken connection, or a timeout
  }
}

/** Reports money as a payment provider would, signed with the webhook secret. */
export function reportPayment(url: string, secret: string, event: object): Promise<Reply | null> {
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', secret)
    .update(`${seconds}.${JSON.stringify(event)}`)
    .digest('hex');
  const headers = { 'payment-signature': `t=${seconds},v1=${signature}` };
  return ask(`${url}/v1/payments/webhook`, { method: 'POST', headers, body: event });
}
