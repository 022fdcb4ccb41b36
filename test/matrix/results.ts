import { addResults, type FolderResult, type RunResults } from '../runner/results.js';
import { nameOf, SUITES, type Row, type Suite } from './rows.js';

/** The result of a row. */
export interface RowResult {
  readonly row: Row;
  /** Runs the MySQL contracts and one purchase instead of whole suites. */
  readonly short: boolean;
  /** Commit of the checkout, followed by `+` if it has uncommitted changes. */
  readonly commit: string;
  /** Unix ms of its end. */
  readonly endedAtMs: number;
  readonly tookMs: number;
  /** Versions as the servers report them. Empty if no server came up. */
  readonly versions: Readonly<Record<string, string>>;
  readonly suites: Partial<Record<Suite, FolderResult>>;
  readonly failures: readonly { readonly title: string; readonly reason: string }[];
}

/** The result of one call of `npm test`. */
export interface TestRun {
  readonly title: string;
  /** Null if the run wrote no results. */
  readonly results: RunResults | null;
  /** Why there are no results. */
  readonly reason: string;
}

/** Merges the runs of a row. A run without results counts as a failure. */
export function resultOf(
  runs: readonly TestRun[],
  about: Pick<RowResult, 'row' | 'short' | 'commit' | 'endedAtMs' | 'tookMs'>,
): RowResult {
  const suites: Partial<Record<Suite, FolderResult>> = {};
  const failures: { title: string; reason: string }[] = [];
  let versions: RunResults['versions'] = {};
  for (const { title, results, reason } of runs) {
    if (results === null) {
      failures.push({ title, reason });
      continue;
    }
    failures.push(...results.failures);
    versions = { ...versions, ...results.versions };
    for (const suite of SUITES) {
      const of = results.folders[suite];
      if (of !== undefined) suites[suite] = addResults(suites[suite], of);
    }
  }
  return { ...about, versions, suites, failures };
}

/** A server that did not start, or another failure without a test, counts as one failure. */
export function countsOf(rows: readonly RowResult[]): { passed: number; failed: number; skipped: number } {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const { suites, failures } of rows) {
    const all = Object.values(suites);
    const failed = all.reduce((sum, one) => sum + one.failed, 0);
    counts.passed += all.reduce((sum, one) => sum + one.passed, 0);
    counts.skipped += all.reduce((sum, one) => sum + one.skipped, 0);
    counts.failed += Math.max(failed, failures.length);
  }
  return counts;
}

const HEADER = ['servers and Node', ...SUITES, 'minutes', 'date', 'commit'] as const;

function cellsOf({ row, short, versions, suites, failures, tookMs, endedAtMs, commit }: RowResult): string[] {
  const said = Object.entries(versions).map(([name, version]) => `${name} ${version.replace('-MariaDB', '')}`);
  const failed = Object.values(suites).reduce((sum, one) => sum + one.failed, 0);
  const what = said.length > 1 ? said.join(', ') : nameOf(row);
  return [
    `${what}${short ? ', short part' : ''}${failures.length > failed ? ' FAILED' : ''}`,
    ...SUITES.map((suite) => cellOf(suites[suite])),
    (tookMs / 60_000).toFixed(1),
    new Date(endedAtMs).toISOString().slice(0, 10),
    commit,
  ];
}

/** Returns `612`, `612 of 615, 3 FAILED` or `612, 2 skipped`, or a dash for a suite that the row lacks. */
function cellOf(result: FolderResult | undefined): string {
  if (result === undefined) return '–';
  const { passed, failed, skipped } = result;
  const good = failed === 0 ? String(passed) : `${passed} of ${passed + failed}, ${failed} FAILED`;
  return skipped === 0 ? good : `${good}, ${skipped} skipped`;
}

/** Formats the results as a table in Markdown. */
export function markdownTable(rows: readonly RowResult[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = HEADER.map((_, column) => (column === 0 ? '---' : '---:'));
  return [line(HEADER), line(rule), ...rows.map((row) => line(cellsOf(row)))].join('\n');
}
