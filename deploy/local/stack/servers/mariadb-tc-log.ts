import { closeSync, fstatSync, openSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** `log_tc_size` of MariaDB, which grows the file to this size before anything else. */
const SIZE_MIN_BYTES = 24 * 1024;
/** `tc_log_magic` in sql/log.cc, written before the first entry. */
const MAGIC = Buffer.from([254, 0x23, 0x05, 0x74]);

/**
 * Removes a tc.log that was never finished: a disk that filled up, or a kill -9, in the instant of its making. MariaDB
 * would refuse to start for ever, though such a file cannot hold an entry. A finished one stays: recovery needs it.
 */
export function removeUnfinishedTcLog(dataDir: string): void {
  const path = join(dataDir, 'tc.log');
  if (isUnfinished(path)) rmSync(path);
}

function isUnfinished(path: string): boolean {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return false; // there is none: MariaDB ended in peace
  }
  try {
    const head = Buffer.alloc(MAGIC.length);
    readSync(file, head, 0, head.length, 0);
    return fstatSync(file).size < SIZE_MIN_BYTES || !head.equals(MAGIC);
  } finally {
    closeSync(file);
  }
}
