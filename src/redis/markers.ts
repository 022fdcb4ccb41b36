/** What a marker has behind its kind: the batch, until it is settled. */
export function bodyOf(marker: string | null): string | null {
  const start = marker?.indexOf('{') ?? -1;
  return marker === null || start < 0 ? null : marker.slice(start);
}
