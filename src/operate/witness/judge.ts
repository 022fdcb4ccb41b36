// Judges committed transactions by their rows alone. It shares no code with the programs that write these rows, so that
// a bug there is not repeated here: this file imports no code, and a test compares ALLOWED_MOVES with theirs.

import type { WitnessKind } from '../../core/ports/witness.js';
import type { Row, RowChange, WatchedTable } from '../../mysql/follow-binlog.js';
import type { Judged } from '../../mysql/witness-store.js';

/** Columns that keep their value for the life of a row. Rows of `orders_archive` keep the values of `orders`. */
const KEPT: Readonly<Record<WatchedTable, readonly string[]>> = {
  orders: ['id', 'sale_id', 'request_id', 'batch_id', 'quantity', 'amount_cents', 'created_at', 'expires_at', 'reason'],
  orders_archive: [],
  payments: ['payment_id', 'order_id', 'amount_cents', 'created_at'],
  order_refunds: ['order_id', 'payment_id', 'amount_cents', 'created_at'],
  outbox: ['id', 'kind', 'key', 'payload', 'created_at'],
  sales: ['id', 'created_at'],
  witness_findings: [],
};

/** Moves of an order: docs/architecture.md (States), and decision 61 for the states after `paid`. */
export const ALLOWED_MOVES: Readonly<Record<string, readonly string[]>> = {
  pending_payment: ['paid', 'cancelled', 'expired'],
  paid: ['refunding', 'refunded', 'disputed'],
  refunding: ['paid', 'refunded', 'returned'],
  refunded: ['paid', 'refunding', 'disputed'],
  disputed: ['paid', 'refunded'],
  cancelled: [],
  expired: [],
  failed: [],
  returned: [],
};
const GIVES_UNITS_BACK = ['cancelled', 'expired', 'returned'];

/** Maximum number of findings per transaction and kind. The last finding counts the others. */
const SHOWN_MAX = 20;

/** Judges the rows of one transaction, in their order. */
export function judge(changes: readonly RowChange[]): Judged[] {
  const transaction = new Transaction();
  for (const change of changes) transaction.add(change);
  return transaction.findings();
}

class Transaction {
  readonly #found = new Map<WitnessKind, { readonly shown: Judged[]; all: number }>();
  /** Orders by id: inserted (in their last state), removed from `orders`, added to and removed from the archive. */
  readonly #inserted = new Map<string, Row>();
  readonly #gone = new Map<string, Row>();
  readonly #arrived = new Map<string, Row>();
  readonly #purged = new Map<string, Row>();
  readonly #moves: { readonly row: Row; readonly from: string; readonly to: string }[] = [];
  readonly #refundSums: Row[] = [];
  /** Orders named by other rows: by outbox rows, counted by kind, and by rows of money. */
  readonly #outbox = { batch_recorded: new Map<string, number>(), orders_moved: new Map(), release: new Map() };
  readonly #paid = new Set<string>();
  readonly #unpaid: Row[] = [];
  readonly #refunded = new Set<string>();
  /** The changes of `sold` and of the live units of the orders, by sale. */
  readonly #sold = new Map<string, number>();
  readonly #live = new Map<string, number>();
  /** Sales whose findings this transaction closed. */
  readonly #resolved = new Set<string>();

  add({ table, before, after }: RowChange): void {
    if (before !== null && after !== null) this.#checkKept(table, before, after);
    const row = after ?? before ?? {};
    switch (table) {
      case 'orders':
      case 'orders_archive':
        return this.#order(table, before, after);
      case 'payments':
        if (after === null) this.#unpaid.push(row);
        else if (before === null) this.#paid.add(text(row.order_id));
        return;
      case 'order_refunds':
        if (after !== null) this.#refunded.add(text(row.order_id));
        return;
      case 'outbox':
        if (before === null) this.#announced(row);
        else if (after === null && row.done_at === null) {
          const several = ordersIn(row.payload).length > 1 ? 'with several orders ' : '';
          const why = `a row of kind ${text(row.kind)} ${several}was deleted before it was done`;
          this.#find('row_deleted', 'outbox', row, why);
        }
        return;
      case 'sales':
        return count(this.#sold, text(row.id), Number(after?.sold ?? 0) - Number(before?.sold ?? 0));
      case 'witness_findings':
        if (before?.state === 'open' && after?.state === 'closed') this.#resolved.add(text(after.sale_id));
        return;
    }
  }

  findings(): Judged[] {
    for (const row of this.#inserted.values()) this.#judgeInserted(row);
    for (const move of this.#moves) this.#judgeMove(move);
    for (const row of this.#refundSums)
      if (!this.#refunded.has(text(row.id)))
        this.#find('paid_without_payment', 'orders', row, 'the refunded sum changed without a refund');
    this.#judgeArchive();
    for (const saleId of new Set([...this.#sold.keys(), ...this.#live.keys()])) {
      const [sold, live] = [this.#sold.get(saleId) ?? 0, this.#live.get(saleId) ?? 0];
      const why = `sold changed by ${sold}, and the units of its orders by ${live}`;
      // `witness resolve` corrects `sold` in the transaction that closes a finding of the sale.
      const isCorrected = live === 0 && this.#resolved.has(saleId);
      if (sold !== live && !isCorrected) this.#find('sold_differs', 'sales', { id: saleId }, why);
    }
    return [...this.#found.values()].flatMap(({ shown, all }) =>
      shown.map((one, index) => {
        const more = index === SHOWN_MAX - 1 ? all - SHOWN_MAX : 0;
        return more === 0 ? one : { ...one, detail: `${one.detail} (and ${more} more)` };
      }),
    );
  }

  #order(table: 'orders' | 'orders_archive', before: Row | null, after: Row | null): void {
    const id = text((after ?? before)?.id);
    const isLive = table === 'orders';
    // A purge of the archive leaves `sold` as it is.
    if (before !== null && (isLive || after !== null)) count(this.#live, text(before.sale_id), -unitsOf(before));
    if (after !== null) count(this.#live, text(after.sale_id), unitsOf(after));
    if (before === null) (isLive ? this.#inserted : this.#arrived).set(id, after ?? {});
    else if (after === null) (isLive ? this.#gone : this.#purged).set(id, before);
    else if (isLive && this.#inserted.has(id)) this.#inserted.set(id, after);
    else {
      const [from, to] = [stateOf(before), stateOf(after)];
      if (from !== to) this.#moves.push({ row: after, from, to });
      if (differs(before, after, 'refunded_cents')) this.#refundSums.push(after);
      const isPaid = from === 'pending_payment' && to === 'paid';
      if (!isPaid && differs(before, after, 'paid_at')) this.#find('row_changed', table, after, 'changed: paid_at');
    }
  }

  #announced({ kind, payload }: Row): void {
    const orders = Object.hasOwn(this.#outbox, text(kind)) ? this.#outbox[kind as 'release'] : null;
    if (orders !== null) for (const orderId of ordersIn(payload)) count(orders, orderId, 1);
  }

  #judgeInserted(row: Row): void {
    const state = stateOf(row);
    if (state !== 'pending_payment' && state !== 'failed')
      this.#find('wrong_transition', 'orders', row, `a new order is ${state}`);
    if (!this.#outbox.batch_recorded.has(text(row.id)))
      this.#find('order_without_outbox', 'orders', row, 'a new order without an outbox row');
  }

  #judgeMove({ row, from, to }: { readonly row: Row; readonly from: string; readonly to: string }): void {
    const orderId = text(row.id);
    const { orders_moved: moved, release } = this.#outbox;
    if (ALLOWED_MOVES[from]?.includes(to) !== true)
      this.#find('wrong_transition', 'orders', row, `moved from ${from} to ${to}`);
    if (from === 'pending_payment' && to === 'paid' && !this.#paid.has(orderId))
      this.#find('paid_without_payment', 'orders', row, 'paid without a row in payments');
    const announced = moved.get(orderId) ?? 0;
    count(moved, orderId, -1); // each move needs a row of its own
    if (announced < 1)
      this.#find('order_without_outbox', 'orders', row, `moved from ${from} to ${to} without an outbox row`);
    else if (GIVES_UNITS_BACK.includes(to) && !release.has(orderId))
      this.#find(
        'order_without_outbox',
        'orders',
        row,
        `moved from ${from} to ${to}, and no outbox row gives its units back`,
      );
  }

  /** Orders and their payments go to the archive in one transaction. The audit log says whether there was a purge. */
  #judgeArchive(): void {
    for (const [id, row] of this.#gone) {
      const copy = this.#arrived.get(id);
      if (copy === undefined) this.#find('row_deleted', 'orders', row, 'deleted and not archived');
      else if (Object.keys(row).some((column) => column in copy && differs(row, copy, column)))
        this.#find('row_changed', 'orders', row, 'changed on its way to the archive');
    }
    for (const row of this.#unpaid)
      if (!this.#gone.has(text(row.order_id))) this.#find('row_deleted', 'payments', row, 'deleted and not archived');
    for (const [id, row] of this.#arrived)
      if (!this.#gone.has(id)) this.#find('row_added', 'orders_archive', row, 'archived, and it was in no table');
    const [newest] = [...this.#purged.values()].sort((one, other) => madeMs(other) - madeMs(one));
    if (newest === undefined) return;
    const why = `deleted from the archive without a purge (orders in all: ${this.#purged.size})`;
    this.#find('row_deleted', 'orders_archive', newest, why, madeMs(newest));
  }

  #checkKept(table: WatchedTable, before: Row, after: Row): void {
    // The guard of the stock may fail an order in the transaction that inserted it.
    const mayFail = table === 'orders' && this.#inserted.has(text(before.id));
    // A coupon lowers the amount in the move that pays the order.
    const hasCoupon =
      stateOf(before) === 'pending_payment' &&
      stateOf(after) === 'paid' &&
      Number(after.amount_cents) < Number(before.amount_cents);
    const mayChange = [...(mayFail ? ['expires_at', 'reason'] : []), ...(hasCoupon ? ['amount_cents'] : [])];
    const changed = KEPT[table === 'orders_archive' ? 'orders' : table].filter(
      (column) => differs(before, after, column) && !mayChange.includes(column),
    );
    // `erase-buyer` replaces the id of a buyer.
    if (differs(before, after, 'user_id') && !text(after.user_id).startsWith('erased-')) changed.push('user_id');
    if (changed.length > 0) this.#find('row_changed', table, before, `changed: ${changed.join(', ')}`);
  }

  #find(kind: WitnessKind, table: WatchedTable, row: Row, why: string, newestMs?: number): void {
    const found = this.#found.get(kind) ?? { shown: [], all: 0 };
    this.#found.set(kind, found);
    if (found.all++ >= SHOWN_MAX) return;
    const subject = `${table}:${text(row.id ?? row.payment_id)}`;
    const orderId = {
      outbox: ordersIn(row.payload)[0],
      sales: null,
      witness_findings: null,
      payments: row.order_id,
      order_refunds: row.order_id,
    };
    found.shown.push({
      kind,
      subject,
      orderId: numberOf(table === 'orders' || table === 'orders_archive' ? row.id : orderId[table]),
      saleId: numberOf(table === 'sales' ? row.id : row.sale_id),
      detail: `${subject}: ${why}`,
      ...(newestMs === undefined ? {} : { newestMs }),
    });
  }
}

const text = (value: unknown): string => (value === null || value === undefined ? '' : String(value));
const differs = (one: Row, other: Row, column: string): boolean => text(one[column]) !== text(other[column]);
const count = (sums: Map<string, number>, key: string, by: number): void =>
  void sums.set(key, (sums.get(key) ?? 0) + by);
/** Rows that were written by hand may name anything. */
const numberOf = (id: unknown): string | null => (/^\d{1,19}$/.test(text(id)) ? text(id) : null);
const madeMs = ({ created_at: at }: Row): number => Date.parse(`${text(at).replace(' ', 'T')}Z`);
const stateOf = ({ state, after_paid: afterPaid }: Row): string => text(afterPaid ?? state);
const unitsOf = ({ state, quantity }: Row): number =>
  state === 'pending_payment' || state === 'paid' ? Number(quantity) : 0;

/** Returns the order ids that an outbox row names. A row that was damaged by hand names none. */
function ordersIn(payload: unknown): string[] {
  try {
    const value = JSON.parse(text(payload)) as { orders?: unknown[]; failed?: unknown[] } | readonly Row[];
    if (Array.isArray(value)) return value.map(({ orderId }: Row) => text(orderId));
    const { orders = [], failed = [] } = value as { orders?: unknown[]; failed?: unknown[] };
    return [...orders, ...failed].map(text);
  } catch {
    return [];
  }
}
