/** A module that Node loads before a program (`--import`); plain JavaScript, because the program runs from `dist`. */
const preload = (file: string): URL => new URL(`../preload/${file}`, import.meta.url);

/** Gives a program the pid and the network card of the others that load it; its log says which. */
export const SAME_IDENTITY = preload('same-identity.mjs').href;

/** Collects all garbage of a program before it says how large its heap is. */
export const COLLECT_GARBAGE = preload('collect-garbage.mjs').href;

/** Steps the clock of a program by so much at each SIGUSR2; with `atStart`, the program begins with it. */
export function clockStep(ms: number, { atStart = false } = {}): string {
  const url = preload('clock-step.mjs');
  url.search = `ms=${ms}${atStart ? '&at=start' : ''}`;
  return url.href;
}
