import type { NewOrder } from '../core/ports/order-repository.js';
import type { Draft } from './draft-rows.js';

// Used by the two writers of order rows, which record batches and give up purchases.

/**
 * Maximum number of plans for one transaction. Each look-up, refusal by the guard, or deadlock uses up one. Two or
 * three are usual under stress.
 */
export const ATTEMPTS_MAX = 8;
const AGAIN_MS = 5;
const NO_IDS_WAIT_MAX_MS = 250;

/**
 * Returns the pause before the next plan if other processes write the same rows, ms. It grows with each attempt, with
 * jitter so that the writers drift apart.
 */
export const contendedPauseMs = (attempt: number): number => Math.ceil(AGAIN_MS * attempt * (0.5 + Math.random()));

/**
 * Returns the pause before the next plan if no order ids are available, ms.
 * @param waitMs time until ids are available, according to the minter
 */
export const noIdsPauseMs = (waitMs: number): number => Math.min(waitMs, NO_IDS_WAIT_MAX_MS);

/** @param orderIds an id for each row of the draft */
export const ordersOf = ({ rows }: Draft, orderIds: readonly string[]): NewOrder[] =>
  rows.map(({ batch, purchase, failure }, index) => ({
    orderId: orderIds[index] as string,
    batch,
    purchase,
    failure,
  }));
