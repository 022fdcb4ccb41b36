/** A message of a batch that the broker still stores, Unix ms on its clock. */
export interface TracedMessage {
  /** As a half message, as one that workers see (committed), or published again. */
  readonly kind: 'half' | 'committed' | 'redriven';
  readonly storedAtMs: number;
}

/** The broker as somebody asks it who wants to know of one batch. It forgets after days. */
export interface TraceBroker {
  /** @throws Error with a sentence, when no broker answers */
  messagesOf(batchId: string): Promise<TracedMessage[]>;
}
