/**
 * Returns a sentence that says how MySQL shows that it has lost its last writes. Null if it does not.
 * @param nextEvent the number that its next event would get; null if unknown
 * @param published the highest number of a published event; null if unknown
 */
export function lostTail(nextEvent: string | null, published: bigint | null): string | null {
  if (nextEvent === null || published === null || BigInt(nextEvent) > published) return null;
  return `MySQL has lost its last writes: its next event would be number ${nextEvent}, but event ${published} was published.`;
}
