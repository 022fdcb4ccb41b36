import { assertNever } from '../core/errors.js';
import type { NewSale, Sale } from '../core/sale.js';
import type { SaleRepository, SaleSnapshotCache } from '../core/ports/sale-repository.js';
import type { SaleStore } from '../core/ports/stock-store.js';

export interface SaleAdminPorts {
  readonly repository: SaleRepository;
  readonly store: Pick<SaleStore, 'warm' | 'setState'>;
  readonly cache: SaleSnapshotCache;
}

/**
 * - `done`: the sale is as asked, whether this call moved it or an earlier one
 * - `wrong_state`: this move is not allowed from where the sale stands
 * - `not_warmed`: its stock is not in Redis, so it can't be opened
 * - `repairing`: it is being rebuilt in Redis; ask again
 */
export type SaleAdminAnswer =
  | { readonly outcome: 'done'; readonly sale: Sale }
  | { readonly outcome: 'not_found' }
  | { readonly outcome: 'wrong_state'; readonly sale: Sale }
  | { readonly outcome: 'not_warmed' | 'repairing'; readonly sale: Sale };

/**
 * The life of a sale: draft → warm → open ⇄ paused → closed. MySQL moves first, then Redis follows; every call may
 * be repeated, and a repeat brings a Redis that was left behind into step. Each is in the audit log under the name
 * of its actor, written with the change in MySQL: a change without its entry, or the other way round, cannot be. Should
 * Redis fail before or after it, the caller gets that error and repeats.
 */
export class SaleAdmin {
  readonly #ports: SaleAdminPorts;

  constructor(ports: SaleAdminPorts) {
    this.#ports = ports;
  }

  /** @throws OperationalError mysql */
  async create(sale: NewSale, actor: string): Promise<Sale> {
    return this.#ports.repository.create(sale, actor);
  }

  /** @throws OperationalError mysql */
  async show(saleId: string): Promise<Sale | null> {
    return this.#ports.repository.find(saleId);
  }

  /** @throws OperationalError mysql */
  async list(max: number): Promise<Sale[]> {
    return this.#ports.repository.list({ max });
  }

  /**
   * Loads the stock into Redis. Redis goes first: a sale that reads `warm` in MySQL has its units loaded.
   * A sale that has sold is never loaded again.
   * @throws OperationalError
   */
  async warm(saleId: string, actor: string): Promise<SaleAdminAnswer> {
    const sale = await this.#ports.repository.find(saleId);
    if (sale === null) return { outcome: 'not_found' };
    if (sale.state !== 'draft' && sale.state !== 'warm') return { outcome: 'wrong_state', sale };
    await this.#ports.store.warm(sale);
    return this.#moved(saleId, 'warm', actor);
  }

  async open(saleId: string, actor: string): Promise<SaleAdminAnswer> {
    return this.#moveAndGate(saleId, 'open', actor);
  }

  async pause(saleId: string, actor: string): Promise<SaleAdminAnswer> {
    return this.#moveAndGate(saleId, 'paused', actor);
  }

  async close(saleId: string, actor: string): Promise<SaleAdminAnswer> {
    return this.#moveAndGate(saleId, 'closed', actor);
  }

  async #moveAndGate(saleId: string, state: 'open' | 'paused' | 'closed', actor: string): Promise<SaleAdminAnswer> {
    const answer = await this.#moved(saleId, state, actor);
    if (answer.outcome !== 'done' || answer.sale.retiredAtMs !== null) return answer;
    const gated = await this.#ports.store.setState(answer.sale, state);
    switch (gated) {
      case 'set':
        return answer;
      case 'not_warmed':
      case 'repairing':
        return { outcome: gated, sale: answer.sale };
      case 'closed': // by another operator, between our two steps
        return { outcome: 'wrong_state', sale: (await this.#ports.repository.find(saleId)) ?? answer.sale };
      default:
        return assertNever(gated);
    }
  }

  async #moved(saleId: string, state: 'warm' | 'open' | 'paused' | 'closed', actor: string): Promise<SaleAdminAnswer> {
    const result = await this.#ports.repository.move(saleId, state, actor);
    if (result === null) return { outcome: 'not_found' };
    await this.#ports.cache.forget(saleId);
    return result.moved ? { outcome: 'done', sale: result.sale } : { outcome: 'wrong_state', sale: result.sale };
  }
}
