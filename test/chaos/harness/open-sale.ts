import { randomBytes } from 'node:crypto';
import type { NewSale, Sale } from '../../../src/core/sale.js';
import type { SaleAdmin } from '../../../src/sales/sale-admin.js';
import type { StackHands } from './stack-hands.js';

/** Who opens the sales of tests. */
const ACTOR = 'a-test';

export type SaleParts = Partial<NewSale>;

/** A sale in the book, not warmed: ten units, one a buyer, its window wide around now. */
export function draftSale(
  { admin }: { readonly admin: Pick<SaleAdmin, 'create'> },
  parts: SaleParts = {},
): Promise<Sale> {
  const nowMs = Date.now();
  const sale = {
    sku: `test-${randomBytes(6).toString('hex')}`,
    title: 'A thing in a test',
    priceCents: 1999,
    stock: 10,
    limitPerBuyer: 1,
    buckets: 1,
    opensAtMs: nowMs - 60_000,
    closesAtMs: nowMs + 3_600_000,
    ...parts,
  };
  return admin.create(sale, ACTOR);
}

/** The same, warmed and open. */
export async function openSale(stack: Pick<StackHands, 'admin'>, parts: SaleParts = {}): Promise<Sale> {
  const { saleId } = await draftSale(stack, parts);
  await stack.admin.warm(saleId, ACTOR);
  const opened = await stack.admin.open(saleId, ACTOR);
  if (opened.outcome !== 'done') throw new Error(`sale ${saleId} could not be opened: ${opened.outcome}`);
  return opened.sale;
}
