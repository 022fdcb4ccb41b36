import type { BuyerSlice } from '../load/buyers.js';
import { runChild } from '../load/child.js';
import type { Attack } from './attackers.js';

export interface AttackPlan {
  /** On 127.0.0.1. */
  readonly port: number;
  /** Address of the purchase endpoint. */
  readonly path: string;
  readonly seconds: number;
  /** Requests per second of each kind; 0: this kind stays away. */
  readonly rates: Readonly<Record<Attack, number>>;
  /** Accounts of the flood, each to be used once. The others borrow tokens from the first of them. */
  readonly accounts: BuyerSlice;
  /** Requests that were answered before, for who replays them; empty without signatures. */
  readonly captured: BuyerSlice;
  /** Connections that never finish their headers. */
  readonly slowSockets: number;
}

/** What one kind of attackers did and heard. */
export interface AttackTally {
  readonly sent: number;
  readonly answered: number;
  /** Answers by status. */
  readonly byStatus: Readonly<Record<string, number>>;
}

/** How the slow ones fared. */
export interface SlowTally {
  readonly opened: number;
  /** Closed by the server, and of these, with a 408 before. */
  readonly closed: number;
  readonly toldWhy: number;
  /** The longest that one of them stayed, ms; those that were open at the end count with their age. */
  readonly longestMs: number;
}

export interface AttackResult {
  readonly tallies: Readonly<Record<Attack, AttackTally>>;
  /** One byte of HEARD per account of the flood, base64. */
  readonly heard: string;
  readonly slow: SlowTally;
  /** First request and last answer, Unix ms. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** CPU seconds of the attackers. */
  readonly cpuSeconds: number;
}

/** Attacks until the time is over, in a process of its own, then waits for what is not answered yet. */
export const runAttack = (plan: AttackPlan, signal: AbortSignal): Promise<AttackResult> =>
  runChild<AttackPlan, AttackResult>(new URL('./attack-child.ts', import.meta.url), plan, signal);
