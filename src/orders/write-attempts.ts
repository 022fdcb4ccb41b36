import type { NewOrder } from '../core/ports/order-repository.js';
import type { Draft } from './draft-rows.js';

// Used by both writers of order rows: recording batches and giving up purchases.

/** Plans per transaction. Each look-up, refusal by the guard, or deadlock uses one; two or three are usual. */
export const ATTEMPTS_MAX = 8;
const AGAIN_MS = 5;
const NO_IDS_WAIT_MAX_MS = 250;

/** Pause before the next plan if other processes write the same rows, ms. Jitter lets the writers drift apart. */
export const contendedPauseMs = (attempt: number): number => Math.ceil(AGAIN_MS * attempt * (0.5 + Math.random()));

/** @param waitMs time until ids are available, according to the minter */
export const noIdsPauseMs = (waitMs: number): number => Math.min(waitMs, NO_IDS_WAIT_MAX_MS);

/** @param orderIds one for each row of the draft */
export const ordersOf = ({ rows }: Draft, orderIds: readonly string[]): NewOrder[] =>
  rows.map(({ batch, purchase, failure }, index) => ({
    orderId: orderIds[index] as string,
    batch,
    purchase,
    failure,
  }));
