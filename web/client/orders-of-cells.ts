import type { Answer, OrderPage, OrdersOfCells } from './types.js';

const newestFirst = (a: string, b: string): number => Number(BigInt(b) - BigInt(a));

/**
 * Merges pages that begin at the same order id: ids grow with time in all cells. A cell with older orders says how far
 * its page is complete, so the merged page ends where the first of them does.
 * @param answers of these cells, in the same order
 */
export function mergeOrders(cells: readonly number[], answers: readonly Answer<OrderPage>[]): Answer<OrdersOfCells> {
  const pages = answers.flatMap((answer) => (answer.ok ? [answer.body] : []));
  const refusal = answers.find((answer) => !answer.ok);
  if (refusal !== undefined && pages.length === 0) return refusal;
  const [next = null] = pages.flatMap((page) => page.next ?? []).sort(newestFirst);
  const orders = pages
    .flatMap((page) => page.orders.filter(({ orderId }) => BigInt(orderId) >= BigInt(next ?? 0)))
    .sort((a, b) => newestFirst(a.orderId, b.orderId));
  const missingCells = cells.filter((_, index) => !answers[index]?.ok);
  return { ok: true, status: 200, body: { orders, next, missingCells } };
}
