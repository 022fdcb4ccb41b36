/** The clocks of the servers, Unix ms. */
export interface ServerClocks {
  /** @throws OperationalError mysql */
  mysql(): Promise<number>;
  /** Returns one read per server. A read rejects if its server does not answer. */
  redis(): readonly Promise<number>[];
}
