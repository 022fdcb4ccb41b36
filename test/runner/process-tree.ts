import { readdirSync } from 'node:fs';
import { identityOf, parentOf } from '../../deploy/local/stack/processes.js';

/**
 * Kills a process and everything that it has started, because servers and programs of a test would outlive the test.
 */
export function killTree(pid: number): void {
  // before the first process dies, because its children get another parent then
  const all = [pid, ...descendantsOf(pid)];
  for (const one of all) {
    try {
      process.kill(one, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has ended by itself
    }
  }
}

/** Returns the pids of all descendants that are still running. */
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
