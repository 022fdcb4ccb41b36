import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const TAIL_BYTES = 16 * 1024;
const LINE_LENGTH_MAX = 240;
const TELLING = /\b(error|fatal|exception|fail(ed|ure)?|denied|cannot|can't|in use|no space left|invalid|not found)\b/i;

/** MariaDB says its everyday things this way. */
const EVERYDAY = /\[(Note|Warning)\]/;
/** A server that died after so few lines died of what the last one says. */
const EARLY_DEATH_LINES = 3;

/**
 * The line of a log that most likely says why its server died: the last one that sounds like it; else the last, if
 * there are only a few. A server that was killed says nothing, and then neither do we.
 * @param from offset in bytes; what stood in the log before this start does not count
 */
export function tellingLine(logFile: string, from = 0): string | null {
  const lines = tailOf(logFile, from)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^at /.test(line) && !EVERYDAY.test(line));
  const line =
    lines.findLast((one) => TELLING.test(one)) ?? (lines.length <= EARLY_DEATH_LINES ? lines.at(-1) : undefined);
  return line === undefined ? null : line.slice(0, LINE_LENGTH_MAX);
}

function tailOf(logFile: string, from: number): string {
  let file: number;
  try {
    file = openSync(logFile, 'r');
  } catch {
    return ''; // nothing was logged
  }
  try {
    const { size } = fstatSync(file);
    const start = Math.max(from, size - TAIL_BYTES, 0);
    const bytes = Buffer.alloc(Math.max(size - start, 0));
    readSync(file, bytes, 0, bytes.length, start);
    return bytes.toString('utf8');
  } finally {
    closeSync(file);
  }
}
