import { readFileSync, writeFileSync } from 'node:fs';
import type { Folder } from './commands.js';
import type { Failure } from './mocha.js';

/** Where `npm test` leaves what came out, for a program that started it: test/matrix does. */
const FILE_SETTING = 'SECKILL_TEST_RESULTS';

export interface FolderResult {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Time of all runs of this folder, which may have run in parallel. */
  readonly tookMs: number;
}

export interface RunResults {
  readonly folders: Partial<Record<Folder, FolderResult>>;
  /** Failures of the whole run, including those that belong to no folder. */
  readonly failures: readonly Failure[];
  /** Name → version, as the servers say it; Node alone where there was no stack. */
  readonly versions: Readonly<Record<string, string>>;
}

/** @param file what the run shall write */
export const resultsSetting = (file: string): Record<string, string> => ({ [FILE_SETTING]: file });

export const isWanted = (): boolean => Boolean(process.env[FILE_SETTING]);

export function writeResults(results: RunResults): void {
  const file = process.env[FILE_SETTING];
  if (file) writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
}

/** Null when the run ended before it could write any. */
export function readResults(file: string): RunResults | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as RunResults;
  } catch {
    return null;
  }
}

/** The sum of two runs of one folder. */
export const addResults = (a: FolderResult | undefined, b: FolderResult): FolderResult => ({
  passed: (a?.passed ?? 0) + b.passed,
  failed: (a?.failed ?? 0) + b.failed,
  skipped: (a?.skipped ?? 0) + b.skipped,
  tookMs: (a?.tookMs ?? 0) + b.tookMs,
});
