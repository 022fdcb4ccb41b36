import type { NewOrder } from '../core/ports/order-repository.js';
import type { Draft } from './draft-rows.js';

// What everybody shares who writes rows of orders: recording batches, and giving purchases up.

/** Plans of one transaction: each look-up, lost guard or deadlock takes one. Two or three are the rule under stress. */
export const ATTEMPTS_MAX = 8;
const AGAIN_MS = 5;
const NO_IDS_WAIT_MAX_MS = 250;

/** Before the next plan, when others write the same rows, ms: longer each time, with jitter so that they part. */
export const contendedPauseMs = (attempt: number): number => Math.ceil(AGAIN_MS * attempt * (0.5 + Math.random()));

/** Before the next plan, when no order ids could be had, ms. @param waitMs until there are some, as the minter says */
export const noIdsPauseMs = (waitMs: number): number => Math.min(waitMs, NO_IDS_WAIT_MAX_MS);

/** @param orderIds one for each row of the draft */
export const ordersOf = ({ rows }: Draft, orderIds: readonly string[]): NewOrder[] =>
  rows.map(({ batch, purchase, failure }, index) => ({
    orderId: orderIds[index] as string,
    batch,
    purchase,
    failure,
  }));
