import type { Endpoint } from '../layer.js';
import type { Level, DegradeRules, Ruling } from './degrade.js';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/ports/clock.js';
import { assertNever, OperationalError } from '../../core/errors.js';

/** Endpoints that read. A purchase has no reduced answer. */
export type ReadEndpoint = Exclude<Endpoint, 'purchase'>;
export type Body = Readonly<Record<string, unknown>>;

/** Fields that a page or a program needs, named as in the HTTP bodies. */
const ESSENTIAL: Readonly<Record<ReadEndpoint, readonly string[]>> = {
  status: ['requestId', 'saleId', 'status', 'orderId', 'orderState', 'reason'],
  sale: [
    ...['saleId', 'title', 'priceCents', 'currency', 'state', 'opensAt', 'closesAt', 'asksFor'],
    ...['serverTime', 'pollAfterMs'],
  ],
  order: ['orderId', 'saleId', 'state', 'amountCents', 'currency', 'expiresAt'],
};

function essentialOf(endpoint: ReadEndpoint, body: Body): Body {
  return Object.fromEntries(ESSENTIAL[endpoint].filter((field) => field in body).map((field) => [field, body[field]]));
}

/** The empty answers. `unknown` means neither yes nor no, and never says that something does not exist. */
const NOTHING_KNOWN: Readonly<Record<ReadEndpoint, Body>> = {
  status: { status: 'unknown' },
  sale: { state: 'unknown', stock: 'unknown' },
  order: { state: 'unknown' },
};

/** @param ids from the address */
const emptyOf = (endpoint: ReadEndpoint, ids: Body): Body => ({ ...ids, ...NOTHING_KNOWN[endpoint] });

/** At L4, a page can do without content. A buyer who waits for a purchase, its status or an order must try again. */
const REFUSAL: Readonly<Record<Endpoint, 'degraded' | 'no_content'>> = {
  purchase: 'degraded',
  status: 'degraded',
  sale: 'no_content',
  order: 'degraded',
};

export type Served =
  /** The answer as it would be without this layer. Null if there is nothing to show. */
  | { readonly served: 'full'; readonly body: Body | null }
  /** An answer with `degraded`, and with `ageMs` if it was read earlier. */
  | { readonly served: 'stale' | 'essential' | 'empty'; readonly body: Body }
  | { readonly served: 'degraded' | 'no_content' };

const marked = (body: Body, degraded: Level, ageMs: number): Body => ({
  ...body,
  degraded,
  ...(ageMs > 0 ? { ageMs: Math.ceil(ageMs) } : {}),
});

export interface CachedAnswer<T> {
  readonly value: T;
  readonly ageMs: number;
}

interface FallbackCacheParts {
  readonly rules: () => DegradeRules['cache'];
  readonly clock: Clock;
  /** Maximum number of answers. The least recently used makes room. */
  readonly max: number;
}

/** Keeps a source's good answers for when it fails. Failures in a row shorten their validity. A success restores it. */
export class FallbackCache<T extends object> {
  readonly #parts: FallbackCacheParts;
  readonly #answers: LRUCache<string, { readonly value: T; readonly atMs: number }>;
  #failures = 0;

  constructor(parts: FallbackCacheParts) {
    this.#parts = parts;
    this.#answers = new LRUCache({ max: parts.max });
  }

  /** Current maximum age of an answer, ms. */
  get ttlMs(): number {
    const { ttlMs, factor, ttlMinMs } = this.#parts.rules();
    return Math.max(ttlMinMs, ttlMs * factor ** this.#failures);
  }

  put(key: string, value: T): void {
    this.worked();
    this.#answers.set(key, { value, atMs: this.#parts.clock.monotonicMs() });
  }

  /** Records that the source has given an answer, which is not stored. */
  worked(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures++;
  }

  get(key: string): CachedAnswer<T> | null {
    const answer = this.#answers.get(key);
    if (answer === undefined) return null;
    const ageMs = Math.max(0, this.#parts.clock.monotonicMs() - answer.atMs);
    return ageMs < this.ttlMs ? { value: answer.value, ageMs } : null;
  }
}

export interface ReadRequest {
  /** Key of the answer. Contains the user id if other users must not see the answer. */
  readonly key: string;
  /** The ids from the address, which the empty answer repeats. */
  readonly ids: Body;
  /** Returns null if there is nothing to show. @throws OperationalError */
  readonly source: () => Promise<Body | null>;
  /** Whether an answer may be reused; default: all. "Not yet" must not be, because it would hide the result. */
  readonly keeps?: (body: Body) => boolean;
}

export class DegradedReads {
  readonly #endpoint: ReadEndpoint;
  readonly #cache: FallbackCache<Body>;

  constructor(endpoint: ReadEndpoint, cache: FallbackCache<Body>) {
    this.#endpoint = endpoint;
    this.#cache = cache;
  }

  /** @throws OperationalError of the source, without an earlier answer */
  async serve(ruling: Ruling | null, request: ReadRequest): Promise<Served> {
    if (ruling === null) return { served: 'full', body: await request.source() };
    switch (ruling.level) {
      case 'L0':
        return this.#full(request);
      case 'L1':
      case 'L2':
        return this.#spared(ruling, request);
      case 'L3':
        return this.#empty('L3', request);
      case 'L4':
        return { served: REFUSAL[this.#endpoint] };
      default:
        return assertNever(ruling.level);
    }
  }

  /** While the source fails, returns its last answer. */
  async #full(request: ReadRequest): Promise<Served> {
    try {
      return { served: 'full', body: await this.#read(request) };
    } catch (error) {
      const kept = error instanceof OperationalError ? this.#cache.get(request.key) : null;
      if (kept === null) throw error;
      return { served: 'stale', body: marked(kept.value, 'L1', kept.ageMs) };
    }
  }

  /** Without an earlier answer, reads the source if the ruling allows it. */
  async #spared({ level, sparesSource }: Ruling, request: ReadRequest): Promise<Served> {
    const kept = this.#cache.get(request.key);
    if (kept !== null) return this.#reduced(level, kept.value, kept.ageMs);
    if (sparesSource) return this.#empty(level, request);
    try {
      const body = await this.#read(request);
      return body === null ? { served: 'full', body } : this.#reduced(level, body, 0);
    } catch (error) {
      if (error instanceof OperationalError) return this.#empty(level, request);
      throw error;
    }
  }

  #reduced(level: Ruling['level'], body: Body, ageMs: number): Served {
    if (level === 'L2') {
      return { served: 'essential', body: marked(essentialOf(this.#endpoint, body), level, ageMs) };
    }
    return ageMs === 0 ? { served: 'full', body } : { served: 'stale', body: marked(body, level, ageMs) };
  }

  #empty(level: Ruling['level'], { ids }: ReadRequest): Served {
    return { served: 'empty', body: marked(emptyOf(this.#endpoint, ids), level, 0) };
  }

  async #read({ key, source, keeps = () => true }: ReadRequest): Promise<Body | null> {
    let body: Body | null;
    try {
      body = await source();
    } catch (error) {
      if (error instanceof OperationalError) this.#cache.failed();
      throw error;
    }
    if (body !== null && keeps(body)) this.#cache.put(key, body);
    else this.#cache.worked();
    return body;
  }
}
