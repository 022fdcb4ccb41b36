import { readFileSync } from 'node:fs';
import { parentOf } from './stack/processes.js';

const POLL_MS = 500;

/** Reads processes of this machine. */
interface ProcessTable {
  /** Returns null for a process that has ended. */
  parentOf(pid: number): number | null;
  /** Returns the command line, or an empty text for a process that has ended. */
  commandOf(pid: number): string;
}

/**
 * Detects the end of npm. npm runs a script in a shell (`sh -c 'node …'`), so a signal that ends npm may not reach us:
 * the shell stays, or we continue without a parent.
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

/**
 * Calls back once the npm of `npm start` has ended. Never calls back without npm or after the signal.
 */
export function onNpmEnd(signal: AbortSignal, callback: () => void, env = process.env): void {
  if (env.npm_lifecycle_event !== 'start') return; // started without npm, so the parent may end
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
