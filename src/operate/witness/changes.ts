import type { Committed } from './follow-binlog.js';
import type { Row } from './judge.js';

type Fields = Readonly<Record<string, string | number | null>>;

/** A change of an order or a sale, for caches and reports. */
interface Change {
  /** When it was committed, in whole seconds. */
  readonly at: string;
  readonly what: 'order' | 'sale';
  readonly id: string;
  /** Null: it is new. */
  readonly before: Fields | null;
  /** Null: it was deleted. */
  readonly after: Fields | null;
}

/** Lists what a transaction changed, as far as it shows. An order that moves to the archive does not change. */
export function changesIn({ changes, atMs }: Pick<Committed, 'changes' | 'atMs'>): Change[] {
  const at = new Date(atMs).toISOString();
  const archived = new Set(
    changes.flatMap(({ table, before, after }) => (table === 'orders_archive' && before === null ? [after?.id] : [])),
  );
  return changes.flatMap(({ table, before, after }): Change[] => {
    const id = (after ?? before)?.id;
    const isMove = table.startsWith('orders') && (before === null || after === null) && archived.has(id);
    const shown = table === 'sales' ? saleFields : /^orders/.test(table) ? orderFields : null;
    if (shown === null || isMove) return [];
    const [was, is] = [before && shown(before), after && shown(after)];
    if (JSON.stringify(was) === JSON.stringify(is)) return [];
    return [{ at, what: table === 'sales' ? 'sale' : 'order', id: String(id), before: was, after: is }];
  });
}

const word = (value: unknown): string => String(value);

const orderFields = (row: Row): Fields => ({
  saleId: word(row.sale_id),
  userId: word(row.user_id),
  requestId: word(row.request_id),
  quantity: Number(row.quantity),
  amountCents: Number(row.amount_cents),
  state: word(row.after_paid ?? row.state),
  refundedCents: Number(row.refunded_cents ?? 0),
});

const saleFields = (row: Row): Fields => ({
  sku: word(row.sku),
  title: word(row.title),
  priceCents: Number(row.price_cents),
  currency: word(row.currency),
  state: word(row.state),
  stock: Number(row.stock),
  sold: Number(row.sold),
});
