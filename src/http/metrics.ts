import { Counter, Gauge, type Registry } from 'prom-client';

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

/** What the API counts. */
export function createHttpMetrics(registry: Registry) {
  const registers = [registry];
  const answers = new Counter({
    name: 'seckill_http_answers_total',
    help: 'Answers by route and code: an outcome, a status or a problem code.',
    labelNames: ['route', 'code'],
    registers,
  });
  const dropped = new Counter({
    name: 'seckill_http_connections_dropped_total',
    help: 'Connections closed because too many were open.',
    registers,
  });
  return {
    /** Binds one counter; the hot path binds each pair once and calls the function per answer. */
    answered: (route: HttpRoute, code: string): (() => void) => {
      const counter = answers.labels(route, code);
      return () => counter.inc();
    },
    connectionDropped: (): void => dropped.inc(),
  };
}

export type HttpMetrics = ReturnType<typeof createHttpMetrics>;

/** What is known of the keys of identity providers. */
export function createIdentityMetrics(registry: Registry) {
  const registers = [registry];
  const reads = new Counter({
    name: 'seckill_jwks_reads_total',
    help: 'Times that the keys of an issuer were read, or could not be read.',
    labelNames: ['issuer', 'result'],
    registers,
  });
  const keys = new Gauge({
    name: 'seckill_jwks_keys',
    help: 'Keys of an issuer that tokens are checked with. 0: none were ever read.',
    labelNames: ['issuer'],
    registers,
  });
  return {
    keysRead: (issuer: string, known: number): void => {
      reads.labels(issuer, 'read').inc();
      keys.labels(issuer).set(known);
    },
    keysNotRead: (issuer: string): void => reads.labels(issuer, 'failed').inc(),
  };
}
