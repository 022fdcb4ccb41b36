import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BUILT_MAIN } from './built-main.js';

const HARNESS = join(BUILT_MAIN, '../../chaos/harness');
const SOAK = join(BUILT_MAIN, '../../chaos/soak');

/** Gives a program the pid and the network card of the others that load it; its log says which. */
export const SAME_IDENTITY = pathToFileURL(join(HARNESS, 'same-identity.js')).href;

/** Collects all garbage of a program before it says how large its heap is. */
export const COLLECT_GARBAGE = pathToFileURL(join(SOAK, 'collect-garbage.js')).href;

/** Steps the clock of a program by so much at each SIGUSR2; with `atStart`, the program begins with it. */
export function clockStep(ms: number, { atStart = false } = {}): string {
  const url = pathToFileURL(join(HARNESS, 'clock-step.js'));
  url.search = `ms=${ms}${atStart ? '&at=start' : ''}`;
  return url.href;
}
