import { assertNever } from '../core/errors.js';
import type { FieldError } from '../core/field-errors.js';
import { isAsSeen, type NewSale, type Sale, type SeenSale } from '../core/sale.js';
import type { SaleFilter, SaleRepository, SaleSnapshotCache } from '../core/ports/sale-repository.js';
import type { SaleStore } from '../core/ports/stock-store.js';
import { overlapsOf, type Overlap } from './new-sale.js';

export interface SaleAdminPorts {
  readonly repository: SaleRepository;
  readonly store: SaleStore;
  readonly cache: SaleSnapshotCache;
}

export type SaleCreated =
  | { readonly outcome: 'created'; readonly sale: Sale }
  | { readonly outcome: 'overlaps'; readonly errors: readonly FieldError[] };

export type SalesImported =
  | { readonly outcome: 'created'; readonly sales: readonly Sale[] }
  | { readonly outcome: 'overlaps'; readonly overlaps: readonly Overlap[] };

/**
 * - `done`: the sale is in the requested state; `unchanged` if an earlier call moved it
 * - `in_repair`: MySQL has the requested state. Redis has lost or is rebuilding the sale, so nobody can buy until the
 *   repair ends with this state
 * - `wrong_state`: the current state does not allow this move
 */
export type SaleAdminAnswer =
  | { readonly outcome: 'done'; readonly sale: Sale; readonly unchanged?: boolean }
  | { readonly outcome: 'in_repair'; readonly sale: Sale }
  | { readonly outcome: 'wrong_state'; readonly sale: Sale }
  | { readonly outcome: 'not_found' };

/**
 * The life of a sale: draft → warm → open ⇄ paused → closed. Each move goes to MySQL first, with its entry in the audit
 * log in the same transaction, then to Redis. Every call may be repeated, and a repeat updates Redis if it was left
 * behind. If Redis fails, the caller gets that error and calls again.
 */
export class SaleAdmin {
  readonly #ports: SaleAdminPorts;

  constructor(ports: SaleAdminPorts) {
    this.#ports = ports;
  }

  /** A sale that the keeper runs must not overlap another sale of its sku. @throws OperationalError mysql */
  async create(sale: NewSale, actor: string): Promise<SaleCreated> {
    const { repository } = this.#ports;
    if (sale.warmBeforeMs === null) return { outcome: 'created', sale: await repository.create(sale, actor) };
    const made = await repository.createAll([sale], actor, (calendar) => overlapsOf([sale], calendar));
    if ('wrong' in made) return { outcome: 'overlaps', errors: made.wrong.map(({ error }) => error) };
    return { outcome: 'created', sale: made.created[0] as Sale };
  }

  /**
   * Creates all of these sales, or none if one overlaps another sale of its sku, even a sale that an operator runs.
   * @param nameOf names a sale of the list in an error
   * @throws OperationalError mysql; no sale was created
   */
  async import(sales: readonly NewSale[], actor: string, nameOf: (index: number) => string): Promise<SalesImported> {
    const made = await this.#ports.repository.createAll(sales, actor, (calendar) =>
      overlapsOf(sales, calendar, { nameOf }),
    );
    return 'wrong' in made
      ? { outcome: 'overlaps', overlaps: made.wrong }
      : { outcome: 'created', sales: made.created };
  }

  /** Returns the sales that an import would refuse now. @throws OperationalError mysql */
  async overlaps(sales: readonly NewSale[], nameOf: (index: number) => string): Promise<Overlap[]> {
    const skus = [...new Set(sales.map(({ sku }) => sku))];
    return overlapsOf(sales, await this.#ports.repository.calendar(skus), { nameOf });
  }

  /** @throws OperationalError mysql */
  async show(saleId: string): Promise<Sale | null> {
    return this.#ports.repository.find(saleId);
  }

  /** @throws OperationalError mysql */
  async list(filter: SaleFilter): Promise<Sale[]> {
    return this.#ports.repository.list(filter);
  }

  /**
   * Loads the stock into Redis. Redis goes first, so a sale that is `warm` in MySQL has its units loaded. A sale that
   * has sold is never loaded again.
   * @param seen if the sale has changed since, the answer is `wrong_state`; also in every move below
   * @throws OperationalError
   */
  async warm(saleId: string, actor: string, seen?: SeenSale): Promise<SaleAdminAnswer> {
    const sale = await this.#ports.repository.find(saleId);
    if (sale === null) return { outcome: 'not_found' };
    if (sale.state !== 'draft' && sale.state !== 'warm') return { outcome: 'wrong_state', sale };
    if (seen !== undefined && !isAsSeen(sale, seen)) return { outcome: 'wrong_state', sale };
    await this.#ports.store.warm(sale);
    const answer = await this.#moved(saleId, 'warm', actor, seen);
    if (answer.outcome === 'not_found') await this.#ports.store.forget(sale); // deleted while it was being loaded
    return answer;
  }

  async open(saleId: string, actor: string, seen?: SeenSale): Promise<SaleAdminAnswer> {
    return this.#moveAndGate(saleId, 'open', actor, seen);
  }

  async pause(saleId: string, actor: string): Promise<SaleAdminAnswer> {
    return this.#moveAndGate(saleId, 'paused', actor);
  }

  async close(saleId: string, actor: string, seen?: SeenSale): Promise<SaleAdminAnswer> {
    return this.#moveAndGate(saleId, 'closed', actor, seen);
  }

  async #moveAndGate(
    saleId: string,
    state: 'open' | 'paused' | 'closed',
    actor: string,
    seen?: SeenSale,
  ): Promise<SaleAdminAnswer> {
    const answer = await this.#moved(saleId, state, actor, seen);
    if (answer.outcome !== 'done' || answer.sale.retiredAtMs !== null) return answer;
    const gated = await this.#ports.store.setState(answer.sale, state);
    switch (gated) {
      case 'set':
        return this.#followed(answer);
      case 'not_warmed':
      case 'repairing':
        return { outcome: 'in_repair', sale: answer.sale };
      case 'closed': // another operator closed the sale between our two steps
        return { outcome: 'wrong_state', sale: (await this.#ports.repository.find(saleId)) ?? answer.sale };
      default:
        return assertNever(gated);
    }
  }

  /** Updates Redis again if another caller has moved the sale between our two writes. */
  async #followed(done: SaleAdminAnswer & { readonly outcome: 'done' }): Promise<SaleAdminAnswer> {
    const { repository, store } = this.#ports;
    const now = await repository.find(done.sale.saleId);
    if (now === null || now.state === done.sale.state || now.state === 'draft') return done;
    await store.setState(now, now.state);
    return { outcome: 'wrong_state', sale: now };
  }

  async #moved(
    saleId: string,
    state: 'warm' | 'open' | 'paused' | 'closed',
    actor: string,
    seen?: SeenSale,
  ): Promise<SaleAdminAnswer> {
    const result = await this.#ports.repository.move(saleId, state, actor, seen);
    if (result === null) return { outcome: 'not_found' };
    await this.#ports.cache.forget(saleId);
    const { sale, outcome } = result;
    return outcome === 'refused'
      ? { outcome: 'wrong_state', sale }
      : { outcome: 'done', sale, unchanged: outcome === 'unchanged' };
  }
}
