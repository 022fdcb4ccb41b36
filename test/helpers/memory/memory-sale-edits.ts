import type { FieldError } from '../../../src/core/field-errors.js';
import type { Sale } from '../../../src/core/sale.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { EditBegun, EditState, SaleChange, SaleEdit, SaleEdits } from '../../../src/core/ports/sale-edits.js';
import type { CalendarEntry } from '../../../src/core/ports/sale-repository.js';
import type { MemoryRepositories } from './memory-repositories.js';

interface Row extends SaleEdit {
  readonly state: EditState;
  readonly actor: string;
  readonly atMs: number;
}

/** The edits of sales in memory. Each call is atomic, like a transaction. */
export class MemorySaleEdits implements SaleEdits {
  readonly rows = new Map<string, Row>();
  readonly #repositories: MemoryRepositories;
  readonly #clock: Clock;

  constructor(repositories: MemoryRepositories, clock: Clock) {
    this.#repositories = repositories;
    this.#clock = clock;
  }

  async begin(
    saleId: string,
    change: SaleChange,
    actor: string,
    check: (sale: Sale, calendar: readonly CalendarEntry[]) => 'wrong_state' | readonly FieldError[],
  ): Promise<EditBegun> {
    const sale = this.#repositories.saleOf(saleId);
    if (sale === undefined) return { outcome: 'not_found' };
    const earlier = [...this.rows.values()].find((row) => row.saleId === saleId && row.state === 'begun');
    if (earlier !== undefined) return { outcome: 'busy', edit: editOf(earlier) };
    const others = this.#repositories.allSales.filter(
      (other) => other.sku === sale.sku && other.state !== 'closed' && other.saleId !== saleId,
    );
    const errors = check(sale, change.closesAtMs === undefined ? [] : others);
    if (errors === 'wrong_state') return { outcome: 'wrong_state', sale };
    if (errors.length > 0) return { outcome: 'wrong', errors };
    const isDraft = sale.state === 'draft';
    const units = (change.stock ?? sale.stock) - sale.stock;
    const isTaken = units < 0 && !isDraft;
    const redisChanges = units !== 0 || (change.closesAtMs ?? sale.closesAtMs) !== sale.closesAtMs;
    const next = {
      ...sale,
      ...change,
      stock: isTaken ? sale.stock : sale.stock + units,
      epoch: sale.epoch + (isDraft && redisChanges ? 1 : 0),
    };
    this.#changed(sale, next, actor);
    if (isDraft || !redisChanges) return { outcome: 'begun', sale: next, edit: null };
    return { outcome: 'begun', sale: next, edit: this.#add({ saleId, units, epoch: sale.epoch, actor }) };
  }

  async finish(edit: SaleEdit): Promise<EditState | 'moved'> {
    return this.#end(edit, (sale, actor) => {
      const { units, saleId, epoch } = edit;
      if (units >= 0) return 'done';
      if (sale.sold > sale.stock + units) {
        this.#add({ saleId, units: -units, epoch, actor });
        return 'refused';
      }
      this.#changed(sale, { ...sale, stock: sale.stock + units }, actor);
      return 'done';
    });
  }

  async refuse(edit: SaleEdit): Promise<EditState | 'moved'> {
    return this.#end(edit, () => 'refused');
  }

  async takeUp({ editId, saleId }: SaleEdit): Promise<SaleEdit | null> {
    const row = this.rows.get(editId);
    const sale = this.#repositories.saleOf(saleId);
    if (row?.state !== 'begun' || sale === undefined) return null;
    const taken = { ...row, epoch: sale.epoch };
    this.rows.set(editId, taken);
    return editOf(taken);
  }

  async unfinished(afterMs: number, max: number): Promise<SaleEdit[]> {
    const old = [...this.rows.values()].filter(
      ({ state, atMs }) => state === 'begun' && atMs <= this.#clock.nowMs() - afterMs,
    );
    return old.slice(0, max).map(editOf);
  }

  async remove(saleId: string, actor: string): Promise<Sale | null> {
    const sale = this.#repositories.saleOf(saleId);
    if (sale === undefined) return null;
    if (sale.state !== 'draft') return sale;
    this.#repositories.removeSale(saleId);
    this.#repositories.audited.push({
      actor,
      action: 'sale.deleted',
      subject: `sale:${saleId}`,
      before: sale,
      after: null,
    });
    return sale;
  }

  #add({ saleId, units, epoch, actor }: Pick<Row, 'saleId' | 'units' | 'epoch' | 'actor'>): SaleEdit {
    const editId = String(this.rows.size + 1);
    const row: Row = { editId, saleId, units, epoch, actor, state: 'begun', atMs: this.#clock.nowMs() };
    this.rows.set(editId, row);
    return editOf(row);
  }

  #end(
    { editId, saleId, units, epoch }: SaleEdit,
    work: (sale: Sale, actor: string) => EditState,
  ): EditState | 'moved' {
    const row = this.rows.get(editId);
    const sale = this.#repositories.saleOf(saleId);
    if (row === undefined || sale === undefined) return 'refused';
    if (row.state !== 'begun') return row.state;
    if (row.epoch !== epoch || (units < 0 && sale.epoch !== epoch)) return 'moved';
    const state = work(sale, row.actor);
    this.rows.set(editId, { ...row, state });
    return state;
  }

  #changed(before: Sale, after: Sale, actor: string): void {
    const keys = (Object.keys(after) as (keyof Sale)[]).filter((key) => before[key] !== after[key]);
    if (keys.length === 0) return;
    const only = (sale: Sale): object => Object.fromEntries(keys.map((key) => [key, sale[key]]));
    this.#repositories.putSale(after);
    const subject = `sale:${before.saleId}`;
    this.#repositories.audited.push({
      actor,
      action: 'sale.edited',
      subject,
      before: only(before),
      after: only(after),
    });
  }
}

const editOf = ({ editId, saleId, units, epoch }: Row): SaleEdit => ({ editId, saleId, units, epoch });
