import { slotOf, WORKER_SLOTS } from './order-id.js';

// A cell is a complete Seckill with its own servers, which sells some of the sales (decision 66). The last two digits
// of a sale id are its cell, and each cell has a sixteenth of the slots for order ids.

export const CELLS_MAX = 16;
/** Row numbers within a cell grow by this step. */
export const CELL_STEP = 100;
const SLOTS_PER_CELL = WORKER_SLOTS / CELLS_MAX;

/** Returns the first and the last slot. @param cell 0 without cells */
export const slotsOfCell = (cell: number): [number, number] =>
  cell === 0 ? [0, WORKER_SLOTS - 1] : [(cell - 1) * SLOTS_PER_CELL, cell * SLOTS_PER_CELL - 1];

interface Named {
  readonly saleId?: string;
  readonly orderId?: string;
}

/**
 * Returns the cell of a sale or order, unless it is ours.
 * @param cell ours; 0 without cells
 * @param named valid ids
 */
export function otherCell(cell: number, { saleId, orderId }: Named): number | null {
  if (cell === 0) return null;
  if (saleId !== undefined && cellOfSale(saleId) !== cell) return cellOfSale(saleId);
  return orderId === undefined || cellOfOrder(orderId) === cell ? null : cellOfOrder(orderId);
}

const cellOfSale = (saleId: string): number => Number(saleId.slice(-2));
const cellOfOrder = (orderId: string): number => Math.floor(slotOf(orderId) / SLOTS_PER_CELL) + 1;
