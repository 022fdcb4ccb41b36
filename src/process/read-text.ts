import { readFileSync } from 'node:fs';
import { utf8Of } from '../core/text.js';
import { UsageError } from './cli-error.js';
import { inLine } from './print.js';

/**
 * Reads a file that the operator named, and drops its byte order mark.
 * @throws UsageError if the file cannot be read or is not UTF-8
 */
export function readText(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    throw new UsageError(`${inLine(file)} cannot be read: ${(cause as Error).message}.`, { cause });
  }
  const text = utf8Of(bytes);
  if (text === null) throw new UsageError(`${inLine(file)} is not UTF-8: save it as UTF-8 (in Excel: "CSV UTF-8").`);
  return text.replace(/^\ufeff/, '');
}
