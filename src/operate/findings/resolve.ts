import { assertNever } from '../../core/errors.js';
import { stateOf } from '../../core/order.js';
import type { BatchRecorded, OutboxKind } from '../../core/ports/outbox.js';
import type { Clock } from '../../core/ports/clock.js';
import { MysqlError } from '../../mysql/errors.js';
import { bigint, execute, knex, select } from '../../mysql/knex.js';
import {
  announceEnded,
  lockable,
  lockOrder,
  metadataByOrder,
  SaleOutOfStep,
  type EndedKind,
  type LockedOrder,
} from '../../mysql/move-orders.js';
import type { MysqlPool, Transaction } from '../../mysql/pool.js';
import { readMysqlClock } from '../../mysql/read-facts.js';
import { retryConflicts } from '../../mysql/retry-conflicts.js';
import { closeIn, findingOf, type WitnessFinding } from '../../mysql/witness-store.js';
import { actionOf, movedTo, todoOf, type Action } from './follows.js';

/**
 * - `resolved`: it was acted on, or the rows agree already, and the finding is closed
 * - `would_resolve`: the same without the dry run would resolve it
 * - `person`: nothing was done, and the finding stays open
 * - `failed`: MySQL refused the transaction, and the finding stays open
 * - `closed`: it was closed before
 */
export interface Resolved {
  readonly findingId: string;
  readonly outcome: 'resolved' | 'would_resolve' | 'person' | 'failed' | 'closed';
  readonly kind: WitnessFinding['kind'];
  readonly subject: string;
  readonly action: Action;
  /** What was done, what a person does, or why it failed. */
  readonly note: string;
}

export interface ResolveRequest {
  readonly actor: string;
  readonly dryRun: boolean;
  /** How long the outbox keeps rows that are done. */
  readonly outboxKeepMs: number;
}

/** What would be done, or why a person has to decide. */
type Plan = { readonly note: string; readonly run: (tx: Transaction) => Promise<void> } | { readonly person: string };

/** Maximum number of open findings of a sale that are judged together. If there are more, a person has to decide. */
const OPEN_MAX = 1000;
const CLOSED = { outcome: 'closed', note: 'It was closed before.' } as const;

/**
 * Acts on a finding and closes it, in one transaction with its audit entry. The rows are judged again under their
 * locks, so nothing is done twice, even after a kill or if another keeper acts too. A finding waits while another one
 * of its sale needs a person.
 * @returns null if there is no such finding
 * @throws MysqlError if MySQL does not work for other findings either
 */
export async function resolveFinding(
  pool: MysqlPool,
  clock: Clock,
  findingId: string,
  request: ResolveRequest,
): Promise<Resolved | null> {
  const ofId = knex('witness_findings').whereRaw('id = ?', [bigint(findingId)]);
  const [known] = (await select(pool, ofId)).map(findingOf);
  if (known === undefined) return null;
  const told = { findingId, kind: known.kind, subject: known.subject, action: actionOf(known) };
  try {
    const done = await retryConflicts(clock, () => pool.transaction((tx) => resolve(tx, known, request)));
    return { ...told, ...done };
  } catch (error) {
    const isRefused = error instanceof SaleOutOfStep || (error instanceof MysqlError && error.connectionUsable);
    if (!isRefused) throw error;
    return { ...told, outcome: 'failed', note: error.message };
  }
}

async function resolve(
  tx: Transaction,
  known: WitnessFinding,
  { actor, dryRun, outboxKeepMs }: ResolveRequest,
): Promise<Pick<Resolved, 'outcome' | 'note'>> {
  const { findingId, saleId } = known;
  const action = actionOf(known);
  if (known.state === 'closed') return CLOSED;
  const left = (why: string) => ({ outcome: 'person', note: `${why}${todoOf(known)}` }) as const;
  if (action === 'person' || saleId === null) return left('');

  // Locked together, so that two resolvers of a sale work one after the other.
  const ofSale = knex('witness_findings').where({ sale_id: saleId, state: 'open' }).orderBy('id').limit(OPEN_MAX);
  const open = (await select(tx, ofSale.forUpdate())).map(findingOf);
  if (open.length === OPEN_MAX) return left(`The sale has ${OPEN_MAX} open findings. `);
  if (!open.some((one) => one.findingId === findingId)) return CLOSED;
  const other = open.find((one) => actionOf(one) === 'person');
  if (other !== undefined) return left(`Finding ${other.findingId} of the same sale needs a person first. `);
  const counting = await countingFinding(tx, known);
  if (counting !== null)
    return left(
      `Finding ${counting} counts more rows of the same transaction than it names, and needs a person first. `,
    );
  const [sale] = await select(tx, knex('sales').select('retirement').where({ id: saleId }));
  if (sale?.retirement !== 'none') return left('The sale is not in Redis any more. ');

  const isOld = async () => (await readMysqlClock(tx)) - known.committedAtMs >= outboxKeepMs;
  if (ANNOUNCES.has(action) && (await isOld()))
    return left('Its event may have been written, published and removed since. ');

  const plan = await planOf(tx, action, { ...known, saleId });
  if ('person' in plan) return left(`${plan.person} `);
  if (dryRun) return { outcome: 'would_resolve', note: plan.note };
  await closeIn(tx, known, actor, 'resolved', { action, note: plan.note });
  await plan.run(tx); // last, because it locks the hot row of the sale
  return { outcome: 'resolved', note: plan.note };
}

/**
 * An open finding of the same transaction that counts rows without naming them, or null. Those rows may be of any sale,
 * so nothing that the transaction did to another sale can be judged without them either.
 */
async function countingFinding(tx: Transaction, { place }: WitnessFinding): Promise<string | null> {
  const open = knex('witness_findings').select('id').where({ place, state: 'open' });
  const [counting] = await select(tx, open.where('detail', 'like', '% more)').limit(1));
  return counting?.id ?? null;
}

/** Actions that may write an event. A second event of a move would have another id. A second release gives nothing back. */
const ANNOUNCES: ReadonlySet<Action> = new Set<Action>([
  'end_order',
  'announce_move',
  'announce_order',
  'announce_batch',
]);

type OfSale = WitnessFinding & { readonly saleId: string };

async function planOf(tx: Transaction, action: Exclude<Action, 'person'>, finding: OfSale): Promise<Plan> {
  switch (action) {
    case 'end_order': {
      const counted = await planRecount(tx, finding); // before the order is locked, because the count may take seconds
      return both(await planEnd(tx, finding, ['orders_moved', 'release']), counted);
    }
    case 'announce_order': {
      const counted = await planRecount(tx, finding); // its buyer may be paying
      return both(await planAnnounce(tx, finding, false), counted);
    }
    case 'announce_move':
      return planEnd(tx, finding, ['orders_moved']);
    case 'release_units':
      return planEnd(tx, finding, ['release']);
    case 'announce_batch':
      return planAnnounce(tx, finding, true);
    case 'recount_sold':
      return planRecount(tx, finding);
    default:
      return assertNever(action);
  }
}

function both(first: Plan, second: Plan): Plan {
  if ('person' in first) return first;
  if ('person' in second) return second;
  return {
    note: `${first.note}; ${second.note}`,
    async run(tx) {
      await first.run(tx);
      await second.run(tx);
    },
  };
}

const nothing = (note: string): Plan => ({ note, run: () => Promise.resolve() });

/** An order that ended by hand: its event, its units and the coupons that it had reserved. */
async function planEnd(tx: Transaction, finding: OfSale, kinds: readonly EndedKind[]): Promise<Plan> {
  const order = await lockLive(tx, finding);
  if (order === null) return { person: 'The order is not in the table `orders`.' };
  const state = stateOf(order.state, order.after_paid);
  if ((state !== 'cancelled' && state !== 'expired') || state !== (movedTo(finding) ?? state))
    return { person: `The order is ${state} now.` };
  if (await hasMoney(tx, order.id)) return { person: 'The order has a payment that is not owed back.' };
  const missing: EndedKind[] = [];
  for (const kind of kinds) if (!(await isAnnounced(tx, finding, kind, order.id))) missing.push(kind);
  if (missing.length === 0) return nothing('its outbox rows are there');
  return {
    note: `writes ${missing.join(' and ')} of the order`,
    run: () => announceEnded(tx, order, state, missing, deletedRowOf(finding)),
  };
}

async function lockLive(tx: Transaction, { orderId, saleId }: OfSale): Promise<LockedOrder | null> {
  const locked = orderId === null ? undefined : await lockOrder(tx, orderId);
  return locked?.table === 'orders' && locked.order.sale_id === saleId ? locked.order : null;
}

/**
 * The number of the outbox row that was deleted, or null. The row gets it again: the event may have been published, and
 * consumers know it by that number.
 */
const deletedRowOf = ({ subject }: WitnessFinding): string | null => /^outbox:(\d+)$/.exec(subject)?.[1] ?? null;

/** Whether a payment was recorded that no row owes back. */
async function hasMoney(tx: Transaction, orderId: string): Promise<boolean> {
  const kept = knex.from('payments as p').leftJoin('refunds as r', 'r.payment_id', 'p.payment_id');
  const ofOrder = kept.where('p.order_id', orderId).whereNull('r.payment_id');
  return (await select(tx, ofOrder.select('p.payment_id').limit(1))).length > 0;
}

/**
 * Whether a row of the outbox was written since: by hand, or for the same finding, which may come twice. A release also
 * holds the key of its buyer, who may choose any number.
 */
async function isAnnounced(tx: Transaction, finding: OfSale, kind: OutboxKind, orderId: string): Promise<boolean> {
  const named = kind === 'release' ? `"orderId":"${orderId}"` : `"${orderId}"`;
  const deleted = deletedRowOf(finding);
  const written = knex('outbox')
    .where({ kind })
    .where((row) => {
      void row.where('created_at', '>=', new Date(finding.committedAtMs));
      if (deleted !== null) void row.orWhere('id', bigint(deleted));
    })
    .whereRaw('INSTR(payload, ?) > 0', [named]);
  return (await select(tx, written.select('id').limit(1))).length > 0;
}

/** A new order without its event, or all orders of a batch. */
async function planAnnounce(tx: Transaction, finding: OfSale, ofBatch: boolean): Promise<Plan> {
  const { saleId, orderId } = finding;
  const first = await lockLive(tx, finding);
  if (first === null || orderId === null) return { person: 'The order is not in the table `orders`.' };
  if (!ofBatch && first.state !== 'pending_payment') return { person: `The order is ${first.state} now.` };
  const [named] = await select(tx, knex('orders').select('batch_id').where({ id: orderId }));
  const batchId = named?.batch_id ?? '';
  const leftUs = knex.raw('TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), orders.expires_at) AS left_us');
  const created = lockable('orders')
    .select('orders.batch_id', leftUs)
    .where({ 'orders.sale_id': saleId })
    .where(ofBatch ? { batch_id: batchId } : { id: orderId })
    .orderBy('id');
  const orders = (await select(tx, created)) as unknown as readonly (LockedOrder & {
    readonly batch_id: string;
    /** The time left to pay, null without a deadline. */
    readonly left_us: string | null;
  })[];
  const live = orders.filter(({ state }) => state !== 'failed');
  if (live.some(({ state, left_us: us }) => state === 'pending_payment' && us === null))
    return { person: 'The order has no deadline in `expires_at`.' };
  if (await isAnnounced(tx, finding, 'batch_recorded', orderId)) return nothing('its outbox row is there');
  const metadata = metadataByOrder(orders);
  const recorded: BatchRecorded = {
    batchId,
    saleId,
    orders: live.map(({ id }) => id),
    failed: orders.filter(({ state }) => state === 'failed').map(({ id }) => id),
    paymentWindowMs: Math.max(0, ...live.map(({ left_us: us }) => Math.ceil(Number(us ?? 0) / 1000))),
    ...(metadata === null ? {} : { metadata }),
  };
  const id = deletedRowOf(finding);
  const row = { kind: 'batch_recorded', key: batchId, sale_id: saleId, payload: JSON.stringify(recorded) } as const;
  return {
    note: `writes batch_recorded for ${orders.length} orders of batch ${batchId}`,
    run: async () => void (await execute(tx, knex('outbox').insert(id === null ? row : { id, ...row }))),
  };
}

/** `orders` has no index by sale. The server ends a count after this time. */
const COUNT_MAX_S = 2;
/** MariaDB runs the first comment, and MySQL reads the second one. */
const COUNT = `/*M! SET STATEMENT max_statement_time = ${COUNT_MAX_S} FOR */
  SELECT /*+ MAX_EXECUTION_TIME(${COUNT_MAX_S * 1000}) */ s.sold, s.stock, COALESCE(SUM(o.quantity), 0) AS units
  FROM sales AS s LEFT JOIN orders AS o ON o.sale_id = s.id AND o.state IN ('pending_payment', 'paid')
  WHERE s.id = ? GROUP BY s.id, s.sold, s.stock`;

/**
 * Compares `sold` with the units of the live orders, in the snapshot of a single statement. Every program changes both in
 * one transaction, so their difference stays the same while the sale sells, and can be added later without keeping the
 * hot row locked during the count.
 */
async function planRecount(tx: Transaction, { saleId }: OfSale): Promise<Plan> {
  const counting = tx.query<{ sold: number; stock: number; units: string }>(COUNT, [saleId]);
  const [counted] = await counting.catch((error: unknown) => {
    if (error instanceof MysqlError && error.kind === 'too_slow') return [null];
    throw error;
  });
  if (counted === null) {
    const compare = `\`seckill reconcile --sale ${saleId}\` counts them in pages`;
    return { person: `MySQL cannot count the orders of the sale within ${COUNT_MAX_S} s. ${compare}.` };
  }
  if (counted === undefined) return { person: 'The sale does not exist.' };
  const { sold, stock } = counted;
  const units = Number(counted.units);
  if (units > stock) return { person: `The orders have ${units} units, and the stock is ${stock}.` };
  const by = units - sold;
  if (by === 0) return nothing('sold is the sum of the orders');
  return {
    note: `changes sold by ${by} to the ${units} units of the orders`,
    async run() {
      const fits = knex('sales').where({ id: saleId }).whereRaw('CAST(sold AS SIGNED) + ? BETWEEN 0 AND stock', [by]);
      const { affectedRows } = await execute(tx, fits.update({ sold: knex.raw('CAST(sold AS SIGNED) + ?', [by]) }));
      if (affectedRows !== 1) throw new SaleOutOfStep(saleId);
    },
  };
}
