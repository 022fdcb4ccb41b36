import { LRUCache } from 'lru-cache';
import { OperationalError } from '../core/errors.js';
import type { Sale, SaleCard } from '../core/sale.js';
import type { Clock } from '../core/ports/clock.js';
import type { SaleBook } from '../core/ports/sale-book.js';
import type { SaleCardCache } from '../core/ports/sale-card-cache.js';

export interface SaleCardsPorts {
  readonly book: Pick<SaleBook, 'find'>;
  readonly cache: SaleCardCache;
  readonly clock: Clock;
}

export interface SaleCardsOptions {
  /** How long a card is believed without asking; a change is seen this late, or later while MySQL is out. */
  readonly memoryTtlMs: number;
  /** Cards kept in memory; beyond it the least used one goes. */
  readonly memoryMax: number;
  /** How long one process may take to load a card before another may try. */
  readonly lockMs: number;
}

/** How often, and how many times, a reader looks whether the holder of the lock has finished. */
const LOAD_POLL_MS = 20;
const LOAD_POLLS = 10;
/** How long a reader who has an old card waits for a new one. */
const PATIENCE_MS = 100;

/**
 * Sale cards through three layers: memory, the shared cache, MySQL (P1: `ready`, `not_found`, `loading`; the fourth
 * word, SOLD_OUT, is the local flag). However many buyers ask at once, one process reads MySQL, and in each process
 * one call is under way per sale.
 */
export class SaleCards {
  readonly #ports: SaleCardsPorts;
  readonly #options: SaleCardsOptions;
  readonly #memory: LRUCache<string, SaleCard>;
  readonly #underWay = new Map<string, Promise<SaleCard>>();

  constructor(ports: SaleCardsPorts, options: SaleCardsOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#memory = new LRUCache({
      max: options.memoryMax,
      ttl: options.memoryTtlMs,
      noDeleteOnStaleGet: true,
      ttlResolution: 0, // else the cache remembers our clock for a millisecond of the real one
      perf: { now: () => ports.clock.nowMs() },
    });
  }

  /** The card if memory has it; costs no await. */
  peek(saleId: string): SaleCard | undefined {
    return this.#memory.get(saleId);
  }

  /** What this card says is wrong by now: it is read from MySQL again, by whoever asks for it next. Never throws. */
  async forget(saleId: string): Promise<void> {
    this.#memory.delete(saleId);
    try {
      await this.#ports.cache.forget(saleId);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error; // else it is believed until its life ends
    }
  }

  /** @throws OperationalError redis or mysql */
  get(saleId: string): SaleCard | Promise<SaleCard> {
    const card = this.peek(saleId);
    if (card) return card;
    const known = this.#memory.get(saleId, { allowStale: true });
    return known?.card === 'ready' ? this.#freshOr(known, saleId) : this.#load(saleId);
  }

  /**
   * A card that was good a second ago is better than none: what it says of a warmed sale changes only when
   * that is scattered, which Redis notices, and whether the sale is open Redis says anyway. So buyers do not wait for MySQL while it is out or slow.
   */
  async #freshOr(known: SaleCard & { card: 'ready' }, saleId: string): Promise<SaleCard> {
    const waiting = new AbortController();
    const late = this.#ports.clock.sleep(PATIENCE_MS, waiting.signal).then(() => known);
    const loaded = this.#load(saleId).catch((error: unknown) => {
      if (error instanceof OperationalError) return known;
      throw error;
    });
    const card = await Promise.race([loaded, late]).finally(() => waiting.abort());
    return card === known || card.card === 'loading' ? this.#keep(saleId, known.sale) : card;
  }

  #load(saleId: string): Promise<SaleCard> {
    const underWay = this.#underWay.get(saleId);
    if (underWay) return underWay;
    const load = this.#throughCache(saleId).finally(() => this.#underWay.delete(saleId));
    this.#underWay.set(saleId, load);
    return load;
  }

  async #throughCache(saleId: string): Promise<SaleCard> {
    const { cache, clock } = this.#ports;
    for (let poll = 0; poll < LOAD_POLLS; poll++) {
      const cached = await cache.read(saleId);
      if (cached.cached !== 'missing') return this.#keep(saleId, cached.cached === 'ready' ? cached.sale : null);
      if (await cache.lock(saleId, this.#options.lockMs)) return this.#fromBook(saleId);
      await clock.sleep(LOAD_POLL_MS);
    }
    return { card: 'loading' }; // not kept: the next buyer looks again
  }

  async #fromBook(saleId: string): Promise<SaleCard> {
    const sale = await this.#ports.book.find(saleId);
    await this.#ports.cache.write(saleId, sale);
    return this.#keep(saleId, sale);
  }

  #keep(saleId: string, sale: Sale | null): SaleCard {
    const card: SaleCard = sale === null || sale.state === 'draft' ? { card: 'not_found' } : { card: 'ready', sale };
    this.#memory.set(saleId, card);
    return card;
  }
}
