import type { BuyerSlice } from './buyers.js';

/** The endpoint of a load, its buyers and its length. */
export interface LoadPlan {
  /** Port on 127.0.0.1. */
  readonly port: number;
  /** Path of the purchase endpoint. */
  readonly path: string;
  readonly buyers: BuyerSlice;
  readonly connections: number;
  readonly seconds: number;
  /** Sends only the buyers whose lane belongs to this part of all lanes. Absent: all buyers. */
  readonly lanes?: { readonly part: number; readonly of: number };
}

/** A complete request without a body, sent again and again. */
export interface RepeatPlan extends Omit<LoadPlan, 'path' | 'buyers'> {
  readonly request: string;
}

/** Latency in ms. */
export interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface LoadResult {
  /** Requests written. */
  readonly sent: number;
  /** Complete answers, of any status. */
  readonly answered: number;
  /** Answers 2xx. */
  readonly accepted: number;
  /** Requests without an answer, because their connection broke or the time was over. */
  readonly errors: number;
  /** Time of the first request and of the last answer, in Unix ms. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** Counts from the write of the request in a closed loop, and from its due time in an open loop. */
  readonly latency: Latency;
  /** True if the load ended early because every prepared buyer had been used. */
  readonly ranOutOfBuyers: boolean;
  /** CPU seconds of the load generator. */
  readonly cpuSeconds: number;
}

/** The body that a shop would send. */
export const PURCHASE_BODY = '{"quantity":1}';

/** Returns the parts of a request before and after the headers of its buyer. */
export function requestFrame({ port, path }: Pick<LoadPlan, 'port' | 'path'>): { head: string; tail: string } {
  const lines = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Content-Type: application/json',
    `Content-Length: ${PURCHASE_BODY.length}`,
  ];
  return { head: `${lines.join('\r\n')}\r\n`, tail: `\r\n${PURCHASE_BODY}` };
}
