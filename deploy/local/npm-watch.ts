import { readFileSync } from 'node:fs';
import { parentOf } from './stack/processes.js';

const POLL_MS = 500;

/** What is known of the processes of this machine. */
interface ProcessTable {
  /** Null for a process that has ended. */
  parentOf(pid: number): number | null;
  /** The command line; empty for a process that has ended. */
  commandOf(pid: number): string;
}

/**
 * npm runs a script in a shell (`sh -c 'node …'`), so a signal that ends npm need not reach us: the shell stays, or we
 * go on without a parent.
 * @param script the command that npm gave its shell
 * @returns a check that is true once npm or its shell has ended
 */
export function npmEndedCheck(script: string, pid: number, table: ProcessTable): () => boolean {
  const chain = [pid, table.parentOf(pid)];
  const parent = chain[1];
  if (parent && table.commandOf(parent).includes(script)) chain.push(table.parentOf(parent));
  return () =>
    chain.slice(1).some((above, index) => above !== null && table.parentOf(chain[index] as number) !== above);
}

/** Calls back once when the npm of `npm start` or `npm run stack` has ended; without npm, or after the signal, never. */
export function onNpmEnd(signal: AbortSignal, callback: () => void, env = process.env): void {
  if (env.npm_lifecycle_event !== 'start' && env.npm_lifecycle_event !== 'stack') return; // started without npm: its parent may end
  const hasEnded = npmEndedCheck(env.npm_lifecycle_script ?? '', process.pid, { parentOf, commandOf });
  const timer = setInterval(() => {
    const ended = hasEnded();
    if (ended || signal.aborted) clearInterval(timer);
    if (ended && !signal.aborted) callback();
  }, POLL_MS);
  timer.unref();
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
