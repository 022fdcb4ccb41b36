import { readdirSync } from 'node:fs';
import { identityOf, parentOf } from '../../deploy/local/stack/processes.js';

/**
 * Ends a process and all that it has started, at once: servers and programs of a test know nothing of its end, and would live on.
 * Their data is thrown away by whoever starts them next.
 */
export function killTree(pid: number): void {
  const all = [pid, ...descendantsOf(pid)]; // read before the first one dies: its children get another parent then
  for (const one of all) {
    try {
      process.kill(one, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has ended by itself
    }
  }
}

/** Returns the pids of all descendants that still run. */
function descendantsOf(pid: number): number[] {
  const pids = readdirSync('/proc')
    .map(Number)
    .filter((one) => Number.isInteger(one) && identityOf(one) !== null);
  const parents = new Map(pids.map((one) => [one, parentOf(one)]));
  const childrenOf = (parent: number): number[] => pids.filter((one) => parents.get(one) === parent);
  const found: number[] = [];
  for (let level = childrenOf(pid); level.length > 0; level = level.flatMap(childrenOf)) found.push(...level);
  return found;
}
