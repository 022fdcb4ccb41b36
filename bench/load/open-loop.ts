import { runChild } from './child.js';
import type { LoadPlan, LoadResult } from './load.js';

/** Requests that are due at a fixed rate, whether or not earlier ones have been answered. */
export interface OpenLoopPlan extends LoadPlan {
  /** Requests per second. */
  readonly rate: number;
  /** Addresses that the connections come from in turn, and then they ask in turn too; left out: all from 127.0.0.1. */
  readonly addresses?: readonly string[];
}

/** What a buyer of an open-loop load heard; 0 stands for a buyer who was never sent. */
export const HEARD = { ok: 1, fail: 2, unknown: 3 } as const;

export interface OpenLoopResult extends LoadResult {
  /** Of accepted purchases alone. */
  readonly acceptedLatency: LoadResult['latency'];
  /** One byte of HEARD per buyer of the slice, base64. */
  readonly heard: string;
  /** How late the client itself sent, ms: what it adds to every latency. */
  readonly sendDelay: LoadResult['latency'];
}

export const runOpenLoop = (plan: OpenLoopPlan, signal: AbortSignal): Promise<OpenLoopResult> =>
  runChild<OpenLoopPlan, OpenLoopResult>(new URL('./open-loop-child.ts', import.meta.url), plan, signal);

/**
 * When the n-th request of an open-loop load is due, ms after its start. The schedule never looks at answers: that is
 * what keeps a slow server from slowing down those who measure it (coordinated omission).
 */
export const dueAtMs = (place: number, rate: number): number => (place * 1000) / rate;

/** How many requests are due `elapsedMs` after the start, the first one at once. */
export const dueCount = (elapsedMs: number, rate: number): number => Math.floor((elapsedMs * rate) / 1000) + 1;
