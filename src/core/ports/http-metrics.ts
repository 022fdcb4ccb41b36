/** The parts of the API that are counted apart. No ids: their number would have no end. */
const HTTP_ROUTES = [
  'purchase',
  'purchase_status',
  'purchase_events',
  'purchase_token',
  'queue',
  'sale',
  'order',
  'payment',
  'admin',
  'probe',
  'other',
] as const;
export type HttpRoute = (typeof HTTP_ROUTES)[number];

/** Counts what the API answers. */
export interface HttpMetrics {
  /**
   * Binds one counter; the hot path binds each pair once and calls the function per answer.
   * @param code an outcome word, a status word or a problem code; never a user, a sale or a request
   */
  answered(route: HttpRoute, code: string): () => void;

  /** A connection was closed at once because the cap was reached. */
  connectionDropped(): void;
}

/** For tests and tools that count nothing. */
const noHttpMetrics: HttpMetrics = {
  answered: () => () => undefined,
  connectionDropped: () => undefined,
};
