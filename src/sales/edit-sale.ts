import { z } from 'zod';
import { readDuration } from '../core/duration.js';
import { assertNever } from '../core/errors.js';
import { fieldError, fieldErrors, plainError, type FieldError } from '../core/field-errors.js';
import type { Job } from '../core/job.js';
import type { Sale } from '../core/sale.js';
import type { SaleChange, SaleEdit, SaleEdits } from '../core/ports/sale-edits.js';
import type { PriceFault } from '../core/ports/payment-provider.js';
import type { CalendarEntry, SaleRepository, SaleSnapshotCache } from '../core/ports/sale-repository.js';
import type { SaleStore, StockStore } from '../core/ports/stock-store.js';
import type { TransferStore } from '../core/ports/transfer-store.js';
import { newSale, overlapsOf } from './new-sale.js';
import { gatherUnits } from './stock/gather-units.js';
import type { SaleAdmin } from './sale-admin.js';
import { withoutUndefined } from '../core/without-undefined.js';

/** The value that ends the coupons of a sale. Issued coupons stay valid. */
const NO_COUPON = 'none';

export const saleChange = z.strictObject({
  title: newSale.shape.title.optional(),
  priceCents: newSale.shape.priceCents.optional(),
  closesAt: newSale.shape.closesAt.optional(),
  stock: newSale.shape.stock.optional(),
  paymentWindow: newSale.shape.paymentWindow,
  coupon: newSale.shape.coupon.or(z.literal(NO_COUPON)),
});

/** Checks only the form. Whether the sale allows the change is checked when the sale is locked. */
export function readSaleChange(
  input: unknown,
): { readonly change: SaleChange } | { readonly errors: readonly FieldError[] } {
  const read = saleChange.safeParse(input, { error: plainError });
  if (!read.success) return { errors: fieldErrors(read.error) };
  const { closesAt, paymentWindow, title, priceCents, stock, coupon } = read.data;
  const paymentWindowMs = paymentWindow === undefined ? undefined : (readDuration(paymentWindow) ?? undefined);
  const change: SaleChange = {
    ...withoutUndefined({ title, priceCents, stock, paymentWindowMs }),
    ...(closesAt === undefined ? {} : { closesAtMs: Date.parse(closesAt) }),
    ...(coupon === undefined ? {} : { coupon: coupon === NO_COUPON ? null : coupon }),
  };
  if (Object.keys(change).length > 0) return { change };
  return {
    errors: [fieldError('body', 'must name at least one of title, priceCents, closesAt, stock, paymentWindow, coupon')],
  };
}

/** Returns what the current state of the sale does not allow. */
export function checkChange(
  sale: Sale,
  { priceCents, closesAtMs, stock, title, paymentWindowMs, coupon }: SaleChange,
  calendar: readonly CalendarEntry[],
  { nowMs, faultOf }: { readonly nowMs: number; readonly faultOf: PriceFault },
): 'wrong_state' | FieldError[] {
  if (sale.state === 'closed') return 'wrong_state';
  const isDraft = sale.state === 'draft';
  const errors: FieldError[] = [];
  if (priceCents !== undefined && priceCents !== sale.priceCents && !isDraft) {
    errors.push(fieldError('priceCents', 'can be changed only while the sale is a draft'));
  } else if (priceCents !== undefined && priceCents !== sale.priceCents) {
    const fault = faultOf({ amountCents: priceCents, currency: sale.currency });
    if (fault !== null) errors.push(fieldError('priceCents', fault));
  }
  if (closesAtMs !== undefined) {
    if (closesAtMs <= sale.opensAtMs) errors.push(fieldError('closesAt', 'must be later than opensAt'));
    else if (closesAtMs <= nowMs)
      errors.push(fieldError('closesAt', 'must be in the future; to end the sale, close it'));
    if (sale.warmBeforeMs !== null) {
      const [overlap] = overlapsOf([{ ...sale, closesAtMs }], calendar, { field: 'closesAt' });
      if (overlap !== undefined) errors.push(overlap.error);
    }
  }
  if (stock !== undefined) {
    if (stock < sale.sold)
      errors.push(fieldError('stock', `must not be less than the ${sale.sold} units that are sold`));
    if (isDraft && stock < sale.limitPerBuyer) errors.push(fieldError('stock', 'must not be less than limitPerBuyer'));
    const others = [title, priceCents, closesAtMs, paymentWindowMs, coupon].some((value) => value !== undefined);
    if (!isDraft && stock < sale.stock && others)
      errors.push(fieldError('stock', 'must be lowered alone, without other changes'));
  }
  return errors;
}

/**
 * - `done`: changed in MySQL and in Redis
 * - `not_enough`: too few free units to lower the stock; nothing was changed
 * - `repairing`: changed in MySQL. The keeper changes Redis after the repair of the sale; a lower stock also waits for
 *   that
 * - `busy`: an earlier change waits for a repair; no part of this change was made
 */
export type SaleEdited =
  | { readonly outcome: 'done' | 'not_enough' | 'repairing' | 'busy' | 'wrong_state'; readonly sale: Sale }
  | { readonly outcome: 'not_found' }
  | { readonly outcome: 'wrong'; readonly errors: readonly FieldError[] };

export type SaleCancelled =
  | { readonly outcome: 'deleted' | 'closed' | 'wrong_state'; readonly sale: Sale }
  | { readonly outcome: 'not_found' };

export interface SaleEditorPorts {
  readonly edits: SaleEdits;
  readonly sales: SaleRepository;
  readonly admin: SaleAdmin;
  readonly store: SaleStore;
  readonly stock: StockStore;
  readonly transfers: TransferStore;
  readonly cache: SaleSnapshotCache;
  readonly nowMs: () => number;
  readonly faultOf: PriceFault;
}

/** Attempts, because other edits, repairs and buyers may be faster. After the last, the keeper continues. */
const TRIES_MAX = 5;

/**
 * New units go to MySQL first, then to Redis; removed units in the opposite order. So there are never more units for
 * sale than exist. A crash leaves a row in MySQL, and a repeated call or the keeper finishes the edit
 * (docs/decisions/0025).
 */
export class SaleEditor {
  readonly #ports: SaleEditorPorts;

  constructor(ports: SaleEditorPorts) {
    this.#ports = ports;
  }

  /** Safe to repeat: a change states the final stock, not a difference. @throws OperationalError */
  async edit(saleId: string, change: SaleChange, actor: string): Promise<SaleEdited> {
    const { edits, nowMs, cache, faultOf } = this.#ports;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const begun = await edits.begin(saleId, change, actor, (sale, calendar) =>
        checkChange(sale, change, calendar, { nowMs: nowMs(), faultOf }),
      );
      switch (begun.outcome) {
        case 'not_found':
        case 'wrong':
        case 'wrong_state':
          return begun;
        case 'busy':
          if ((await this.finish(begun.edit)) === 'waits') return this.#answer(saleId, 'busy');
          continue;
        case 'begun': {
          await cache.forget(saleId);
          if (begun.edit === null) return { outcome: 'done', sale: begun.sale };
          const ended = await this.finish(begun.edit);
          await cache.forget(saleId);
          return this.#answer(saleId, ended === 'done' ? 'done' : ended === 'refused' ? 'not_enough' : 'repairing');
        }
        default:
          assertNever(begun);
      }
    }
    return this.#answer(saleId, 'busy');
  }

  /**
   * Makes an edit in Redis and ends it in MySQL, even if another process began or is making it. For a retired sale,
   * which Redis has forgotten, MySQL alone decides. A closed sale that Redis has lost is rebuilt first.
   * @returns `waits` while the sale cannot be changed in Redis
   * @throws OperationalError; repeat the call
   */
  async finish(begun: SaleEdit): Promise<'done' | 'refused' | 'waits'> {
    const { edits, sales } = this.#ports;
    let edit = begun;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const sale = await sales.find(edit.saleId);
      if (sale === null) return 'refused';
      const word = sale.retiredAtMs === null ? await this.#inRedis(sale, edit) : edit.units < 0 ? 'refused' : 'done';
      if (word === 'unavailable') {
        if (sale.state === 'closed') await this.#ports.stock.askForRepair(sale.saleId);
        return 'waits';
      }
      const ended =
        word === 'moved' ? 'moved' : word === 'refused' ? await edits.refuse(edit) : await edits.finish(edit);
      if (ended === 'done' || ended === 'refused') return ended;
      edit = (await edits.takeUp(edit)) ?? edit; // if another process has ended the edit, the next `finish` says how
    }
    return 'waits';
  }

  /** Cancels a sale that has not begun to sell: deletes a draft, closes others. @throws OperationalError */
  async cancel(saleId: string, actor: string): Promise<SaleCancelled> {
    const { stock, admin } = this.#ports;
    const removed = await this.remove(saleId, actor);
    if (removed.outcome !== 'wrong_state') return removed;
    const { sale } = removed;
    const stored = await stock.readSale({ saleId, bucket: 0 });
    const hasBegun = stored === null || (sale.state !== 'warm' && stored.nowMs >= sale.opensAtMs);
    if (sale.state === 'closed' || hasBegun || sale.sold > 0) return removed;
    const closed = await admin.close(saleId, actor, sale);
    // A sale in repair sells nothing, and then has the state that MySQL has.
    return closed.outcome === 'done' || closed.outcome === 'in_repair'
      ? { outcome: 'closed', sale: closed.sale }
      : closed;
  }

  /** Deletes a draft. Leaves any other sale alone. @throws OperationalError */
  async remove(saleId: string, actor: string): Promise<SaleCancelled> {
    const sale = await this.#ports.edits.remove(saleId, actor);
    if (sale === null) return { outcome: 'not_found' };
    if (sale.state !== 'draft') return { outcome: 'wrong_state', sale };
    await this.#ports.store.forget(sale); // a process that died while warming may have loaded the draft
    return { outcome: 'deleted', sale };
  }

  /** Bucket 0 comes last and gives the answer: all units are added to or taken from it. */
  async #inRedis(sale: Sale, edit: SaleEdit): Promise<'unavailable' | 'moved' | 'refused' | 'done'> {
    const { saleId, buckets, closesAtMs } = sale;
    const { store } = this.#ports;
    const others = edit.units < 0 ? 0 : buckets - 1; // an edit that removes units changes nothing else, so the window stays
    for (let bucket = others; bucket > 0; bucket--) {
      const word = await store.edit({ saleId, bucket }, { ...edit, units: 0, closesAtMs, isLast: false });
      if (word === 'unavailable') return word;
    }
    const first = { saleId, bucket: 0 };
    let isLast = buckets === 1;
    for (let tries = 0; ; tries++) {
      const word = await store.edit(first, { ...edit, closesAtMs, isLast });
      // The sale was rebuilt after the change in MySQL, so it includes the change, but not a removal of units.
      if (word === 'moved') return edit.units < 0 ? 'moved' : 'done';
      if (word !== 'not_enough') return word;
      const wanted = { least: -edit.units, all: -edit.units };
      const { outcome } = await gatherUnits({ ...first, buckets }, wanted, this.#ports.transfers);
      if (outcome === 'unsure') return 'unavailable';
      isLast = outcome === 'counted' || tries >= TRIES_MAX;
    }
  }

  async #answer(saleId: string, outcome: 'done' | 'not_enough' | 'repairing' | 'busy'): Promise<SaleEdited> {
    const sale = await this.#ports.sales.find(saleId);
    return sale === null ? { outcome: 'not_found' } : { outcome, sale };
  }
}

/** An edit takes milliseconds. At this age, its process is dead. */
const FINISH_AFTER_MS = 5000;
const EDITS_PER_RUN = 100;

/** Finishes edits that a process left half made, or that wait for a repair. */
export function finishEdits({ edits, editor }: { readonly edits: SaleEdits; readonly editor: SaleEditor }): Job {
  return {
    name: 'finish-edits',
    async runOnce(): Promise<void> {
      const failures: unknown[] = [];
      for (const edit of await edits.unfinished(FINISH_AFTER_MS, EDITS_PER_RUN)) {
        await editor.finish(edit).catch((error: unknown) => failures.push(error));
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
