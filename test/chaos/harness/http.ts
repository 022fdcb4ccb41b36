import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { afterGranted } from '../../../deploy/local/stack/granted-time.js';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON, or an empty object if it is not JSON. */
  readonly json: Readonly<Record<string, unknown>>;
}

export interface Ask {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly timeoutMs?: number;
}

/** Measured in granted time, like the limits that a call names. */
const TIMEOUT_MS = 30_000;
const agent = new Agent({ keepAlive: true, maxSockets: 512 });

/** Sends one request. @throws if no complete answer came */
export function ask(url: string, options: Ask = {}): Promise<Answer> {
  const { method = 'GET', token, headers = {}, body, timeoutMs = TIMEOUT_MS } = options;
  const text = body === undefined ? '' : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method,
      agent,
      headers: {
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        ...(text === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }),
        ...headers,
      },
    });
    const cancel = afterGranted(timeoutMs, () => sent.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    const fail = (error: Error): void => {
      cancel();
      reject(error);
    };
    sent.on('error', fail);
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('error', fail);
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        cancel();
        const whole = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: whole, json: jsonOf(whole) });
      });
    });
    sent.end(text);
  });
}

/** Ends the keep-alive connections, so that nothing keeps a test run open. */
export const closeConnections = (): void => agent.destroy();

function jsonOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
