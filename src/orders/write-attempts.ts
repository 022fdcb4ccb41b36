import type { NewOrder } from '../core/ports/order-repository.js';
import type { Draft } from './draft-rows.js';

// Shared by the writers of order rows: recording batches and giving up purchases.

/**
 * The most plans of one transaction. Each look-up, lost guard or deadlock takes one plan. Two or three are usual under
 * stress.
 */
export const ATTEMPTS_MAX = 8;
const AGAIN_MS = 5;
const NO_IDS_WAIT_MAX_MS = 250;

/**
 * Returns the pause before the next plan when others write the same rows, ms. Longer each time, with jitter so that
 * writers drift apart.
 */
export const contendedPauseMs = (attempt: number): number => Math.ceil(AGAIN_MS * attempt * (0.5 + Math.random()));

/**
 * Returns the pause before the next plan when no order ids are available, ms.
 * @param waitMs until ids are available, as the minter says
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
