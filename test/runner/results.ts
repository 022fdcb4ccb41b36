import { readFileSync, writeFileSync } from 'node:fs';
import type { Folder } from './commands.js';
import type { Failure } from './mocha.js';

/** How `npm test` passes its results to a program that started it, such as test/matrix. */
const FILE_SETTING = 'SECKILL_TEST_RESULTS';

export interface FolderResult {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Time of all runs of this folder, which may have been parallel. */
  readonly tookMs: number;
}

export interface RunResults {
  readonly folders: Partial<Record<Folder, FolderResult>>;
  /** Failures of the whole run, including those that belong to no folder. */
  readonly failures: readonly Failure[];
  /** Name → version, as reported by the servers. Only Node if there was no stack. */
  readonly versions: Readonly<Record<string, string>>;
}

/** @param file the file that the run must write */
export const resultsSetting = (file: string): Record<string, string> => ({ [FILE_SETTING]: file });

export const isWanted = (): boolean => Boolean(process.env[FILE_SETTING]);

export function writeResults(results: RunResults): void {
  const file = process.env[FILE_SETTING];
  if (file) writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
}

/** Null if the run ended before it could write its results. */
export function readResults(file: string): RunResults | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as RunResults;
  } catch {
    return null;
  }
}

/** Adds up two runs of one folder. */
export const addResults = (a: FolderResult | undefined, b: FolderResult): FolderResult => ({
  passed: (a?.passed ?? 0) + b.passed,
  failed: (a?.failed ?? 0) + b.failed,
  skipped: (a?.skipped ?? 0) + b.skipped,
  tookMs: (a?.tookMs ?? 0) + b.tookMs,
});
