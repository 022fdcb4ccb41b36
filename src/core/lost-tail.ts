/**
 * Returns how MySQL shows that it has lost its last writes, or null.
 * @param nextEvent the number that its next event would get; null: not known
 * @param published the highest number of a published event; null: not known
 */
export function lostTail(nextEvent: string | null, published: bigint | null): string | null {
  if (nextEvent === null || published === null || BigInt(nextEvent) > published) return null;
  return `MySQL has lost its last writes: its next event would be number ${nextEvent}, but event ${published} was published.`;
}
