import type { Committed, Row } from '../../mysql/follow-binlog.js';

/** A change of an order or a sale, for caches and reports. */
interface Change {
  /** When it was committed, in whole seconds. */
  readonly at: string;
  readonly what: 'order' | 'sale';
  readonly id: string;
  /** Null: it is new. */
  readonly before: Row | null;
  /** Null: it was deleted. */
  readonly after: Row | null;
}

/** Lists the visible changes of a transaction. An order that moves to the archive does not change. */
export function changesIn({ changes, atMs }: Pick<Committed, 'changes' | 'atMs'>): Change[] {
  const at = new Date(atMs).toISOString();
  const archived = new Set(
    changes.flatMap(({ table, before, after }) => (table === 'orders_archive' && before === null ? [after?.id] : [])),
  );
  return changes.flatMap(({ table, before, after }): Change[] => {
    const id = (after ?? before)?.id;
    if (table !== 'sales' && table !== 'orders' && table !== 'orders_archive') return [];
    if (table !== 'sales' && (before === null || after === null) && archived.has(id)) return [];
    const [what, shown] = table === 'sales' ? (['sale', saleOf] as const) : (['order', orderOf] as const);
    const [was, is] = [before && shown(before), after && shown(after)];
    return JSON.stringify(was) === JSON.stringify(is) ? [] : [{ at, what, id: String(id), before: was, after: is }];
  });
}

const orderOf = (row: Row): Row => ({
  saleId: String(row.sale_id),
  userId: row.user_id,
  requestId: row.request_id,
  quantity: row.quantity,
  amountCents: Number(row.amount_cents),
  state: row.after_paid ?? row.state,
  refundedCents: Number(row.refunded_cents ?? 0),
});

const saleOf = ({ sku, title, price_cents: priceCents, currency, state, stock, sold }: Row): Row => {
  return { sku, title, priceCents, currency, state, stock, sold };
};
