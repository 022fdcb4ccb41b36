import type { BuyerSlice } from './buyers.js';

/** One load: what is asked, by whom, for how long. */
export interface LoadPlan {
  /** On 127.0.0.1. */
  readonly port: number;
  /** Address of the purchase endpoint. */
  readonly path: string;
  readonly buyers: BuyerSlice;
  readonly connections: number;
  readonly seconds: number;
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
  /** Whole answers, of any status. */
  readonly answered: number;
  /** Answers 2xx. */
  readonly accepted: number;
  /** Connections that broke, and requests without an answer in time. */
  readonly errors: number;
  /** First request and last answer, Unix ms. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** From the write of the request (closed loop), or from when it was due (open loop). */
  readonly latency: Latency;
  /** The load ended early because every prepared buyer had been used. */
  readonly ranOutOfBuyers: boolean;
  /** CPU seconds of the load generator. */
  readonly cpuSeconds: number;
}

/** A program that makes load. It never repeats a buyer, and waits for the answers to what it has sent. */
export interface LoadGenerator {
  /** With its version, for the report. */
  readonly name: string;
  run(plan: LoadPlan, signal: AbortSignal): Promise<LoadResult>;
}

/** What a shop would send. */
export const PURCHASE_BODY = '{"quantity":1}';

/** Everything of a request but its buyer. */
export function requestFrame({ port, path }: Pick<LoadPlan, 'port' | 'path'>): { head: string; tail: string } {
  const lines = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Content-Type: application/json',
    `Content-Length: ${PURCHASE_BODY.length}`,
  ];
  return { head: `${lines.join('\r\n')}\r\n`, tail: `\r\n${PURCHASE_BODY}` };
}
