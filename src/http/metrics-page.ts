import { sameText } from '../core/hmac.js';
import type { Clock } from '../core/ports/clock.js';
import { recent } from '../core/recent.js';

/** The text format of Prometheus. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface MetricsPageOptions {
  /** The bearer token that it asks for; empty: none. */
  readonly token: string;
  /** How long a page is given again, ms; 0: not at all. */
  readonly cacheMs: number;
}

/** The page of /metrics. To collect it costs milliseconds of the event loop that buyers wait for, so it is kept for a moment. */
export class MetricsPage {
  /** @throws what `collect` throws */
  readonly read: () => Promise<string>;
  readonly #token: string;

  /** @param collect every metric of the process, in the text format of Prometheus */
  constructor(collect: () => Promise<string>, { token, cacheMs }: MetricsPageOptions, clock: Clock) {
    this.read = recent(collect, cacheMs, clock);
    this.#token = token;
  }

  /** Whether it may be read with this value of the Authorization header. */
  isFor(authorization: string | undefined): boolean {
    if (this.#token === '') return true;
    const [, token = ''] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
    return sameText(token, this.#token);
  }
}
