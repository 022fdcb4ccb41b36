/** The parts of the API that are counted apart. No ids: their number would have no end. */
export type HttpRoute =
  | 'purchase'
  | 'purchase_status'
  | 'purchase_events'
  | 'purchase_token'
  | 'queue'
  | 'sale'
  | 'order'
  | 'payment'
  | 'admin'
  | 'probe'
  | 'other';

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
