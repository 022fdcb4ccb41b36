/** Names of the ports that tests may wrap. */
export type Seam =
  | 'stock store'
  | 'stock store of check-backs'
  | 'purchase channel'
  | 'transfer store'
  | 'mysql of the worker'
  | 'order repository'
  | 'batch store'
  | 'delivery source'
  | 'outbox to publish'
  | 'outbox to release'
  | 'order transitions'
  | 'repair store'
  | 'repair repository';

const WRAP = Symbol.for('seckill.wrap');

/**
 * Returns the port, or a wrapped port if a module that was loaded before the program (`node --import`) wraps it. The
 * fail points of tests are such a module. Programs call this for the ports that they use.
 */
export const wrapped = <T extends object>(seam: Seam, port: T): T =>
  (globalThis as { [WRAP]?: (seam: Seam, port: T) => T })[WRAP]?.(seam, port) ?? port;
