import { readFileSync } from 'node:fs';
import { parentOf } from './stack/processes.js';

const POLL_MS = 500;

/**
 * Detects the end of npm. npm runs a script in a shell (`sh -c 'node …'`), so a signal that ends npm may not reach us:
 * the shell stays, or we continue without a parent.
 * @param script the command that npm gave to its shell
 * @returns a function that returns true once npm or its shell has ended
 */
function npmEndedCheck(script: string, pid: number): () => boolean {
  const chain = [pid, parentOf(pid)];
  const parent = chain[1];
  if (parent && commandOf(parent).includes(script)) chain.push(parentOf(parent));
  return () => chain.slice(1).some((above, index) => above !== null && parentOf(chain[index] as number) !== above);
}

/** Calls back once the npm of `npm start` has ended. Never calls back if there is no npm, or after the signal. */
export function onNpmEnd(signal: AbortSignal, callback: () => void, env = process.env): void {
  if (env.npm_lifecycle_event !== 'start') return; // started without npm, so the end of the parent means nothing
  const hasEnded = npmEndedCheck(env.npm_lifecycle_script ?? '', process.pid);
  const timer = setInterval(() => {
    const ended = hasEnded();
    if (ended || signal.aborted) clearInterval(timer);
    if (ended && !signal.aborted) callback();
  }, POLL_MS);
  timer.unref();
}

/** Returns the command line, or an empty text for a process that has ended. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
