import { assertNever, OperationalError } from '../../core/errors.js';
import { emptyOf, essentialOf, marked, REFUSAL, type Body, type ReadEndpoint, type Served } from './answers.js';
import type { FallbackCache } from './fallback-cache.js';
import type { Ruling } from './ruling.js';

export interface ReadRequest {
  /** Names the answer. Whose it is belongs into it where others may not see it: user id and purchase, not purchase. */
  readonly key: string;
  /** As they stand in the address; the empty answer has them. */
  readonly ids: Body;
  /** The full answer; null when there is no such thing. @throws OperationalError */
  readonly source: () => Promise<Body | null>;
  /** Whether an answer may stand in for later ones; left out: any. One that says "not yet" would hide what comes. */
  readonly keeps?: (body: Body) => boolean;
}

/** Answers one endpoint that reads, at the level that was ruled. */
export class DegradedReads {
  readonly #endpoint: ReadEndpoint;
  readonly #cache: FallbackCache<Body>;

  constructor(endpoint: ReadEndpoint, cache: FallbackCache<Body>) {
    this.#endpoint = endpoint;
    this.#cache = cache;
  }

  /** @throws OperationalError from the source, when nothing old can stand in for it */
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

  /** A source that fails is stood in for by what it said last. */
  async #full(request: ReadRequest): Promise<Served> {
    try {
      return { served: 'full', body: await this.#read(request) };
    } catch (error) {
      const kept = error instanceof OperationalError ? this.#cache.get(request.key) : null;
      if (kept === null) throw error;
      return { served: 'stale', body: marked(kept.value, 'L1', kept.ageMs) };
    }
  }

  /** What was said before is given first; the source is read for what nobody has asked lately, if it may be. */
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
