import { z } from 'zod';
import { isSaleId } from '../core/ids.js';

/** More sales than ever sell at once; the list is read from its start for every request. */
const SALES_MAX = 100;

/** The sales that a layer is for. */
export const saleScope = z.union([
  z.literal('all'),
  z.array(z.string().refine(isSaleId, 'must be a sale id')).max(SALES_MAX),
]);
export type SaleScope = z.infer<typeof saleScope>;

export const covers = (scope: SaleScope, saleId: string): boolean => scope === 'all' || scope.includes(saleId);
