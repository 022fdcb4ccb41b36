/**
 * Returns a sentence that says how MySQL shows that it has lost its last writes, or null.
 * @param nextEvent number of its next event; null if unknown
 * @param published highest number of a published event; null if unknown
 */
export function lostTail(nextEvent: string | null, published: bigint | null): string | null {
  if (nextEvent === null || published === null || BigInt(nextEvent) > published) return null;
  return `MySQL has lost its last writes: its next event would be number ${nextEvent}, but event ${published} was published.`;
}
