import { sameText } from '../core/hmac.js';
import type { Clock } from '../core/ports/clock.js';
import { recent } from '../core/recent.js';

/** The text format of Prometheus. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** The page of /metrics, cached briefly, because collecting the metrics blocks the event loop for milliseconds. */
export class MetricsPage {
  /** @throws what `collect` throws */
  readonly read: () => Promise<string>;
  readonly #token: string;

  /**
   * @param collect returns every metric of the process, in the text format of Prometheus
   * @param options `token` is the bearer token that the page requires, or empty if the page is open; `cacheMs` is how
   * long a page is reused, 0 disables the cache
   */
  constructor(
    collect: () => Promise<string>,
    { token, cacheMs }: { readonly token: string; readonly cacheMs: number },
    clock: Clock,
  ) {
    this.read = recent(collect, cacheMs, clock);
    this.#token = token;
  }

  /** Returns whether a request with this value of the Authorization header may read the page. */
  isFor(authorization: string | undefined): boolean {
    if (this.#token === '') return true;
    const [, token = ''] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
    return sameText(token, this.#token);
  }
}
