/** The clocks of the servers, Unix ms. */
export interface ServerClocks {
  /** @throws OperationalError mysql */
  mysql(): Promise<number>;
  /** One read per server; a read rejects while its server gives no answer. */
  redis(): readonly Promise<number>[];
}
