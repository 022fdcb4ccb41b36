import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

/**
 * Minimum coverage by unit and contract tests in each folder, in percent of lines and branches. A missing folder fails.
 * Other tests cover code that only whole programs run, such as commands and wiring.
 */
const FLOORS: Readonly<Record<string, readonly [lines: number, branches: number]>> = {
  'src/admission': [92, 88],
  'src/cli': [65, 70],
  'src/contract': [94, 84],
  'src/core': [92, 84],
  'src/http': [94, 84],
  'src/library': [68, 78], // the rest opens servers
  'src/mysql': [94, 84],
  'src/operate': [90, 88],
  'src/orders': [94, 84],
  'src/payment': [94, 80],
  'src/process': [74, 86],
  'src/programs': [44, 75], // test/integration covers the wiring
  'src/purchase': [94, 88],
  'src/recovery': [94, 84],
  'src/redis': [94, 84],
  'src/rocketmq': [86, 84],
  'src/sales': [94, 86],
  web: [94, 84], // without the code for browsers, which test/browser covers
  'web/client': [95, 86],
};

interface Share {
  readonly covered: number;
  readonly total: number;
}
type Summary = Readonly<Record<string, { readonly lines: Share; readonly branches: Share }>>;

/**
 * Reads what processes with NODE_V8_COVERAGE left in a folder.
 * @returns a table for a person, and a sentence for each floor that was missed
 */
export async function coverageByRoom(folder: string): Promise<{ table: string; missed: string[] }> {
  const c8 = join(REPO_DIR, 'node_modules/c8/bin/c8.js');
  const output = ['--reporter', 'json-summary', '--reports-dir', folder];
  const args = [c8, 'report', '--temp-directory', folder, '--include', 'src/**', '--include', 'web/**', ...output];
  await promisify(execFile)(process.execPath, args, { cwd: REPO_DIR });
  const summary = JSON.parse(readFileSync(join(folder, 'coverage-summary.json'), 'utf8')) as Summary;
  return judge(summary, FLOORS);
}

/** @param summary of c8: by the absolute path of a file, and `total` */
function judge(summary: Summary, floors: typeof FLOORS): { table: string; missed: string[] } {
  const rooms = new Map<string, { lines: Share; branches: Share }>();
  const add = (a: Share, b: Share): Share => ({ covered: a.covered + b.covered, total: a.total + b.total });
  for (const [file, { lines, branches }] of Object.entries(summary)) {
    if (file === 'total') continue;
    const room = roomOf(relative(REPO_DIR, file));
    const before = rooms.get(room) ?? { lines: { covered: 0, total: 0 }, branches: { covered: 0, total: 0 } };
    rooms.set(room, { lines: add(before.lines, lines), branches: add(before.branches, branches) });
  }
  const percent = ({ covered, total }: Share): number => (total === 0 ? 100 : (100 * covered) / total);
  const missed: string[] = [];
  const rows = [...rooms].sort().map(([room, { lines, branches }]) => {
    const [got, floor] = [[percent(lines), percent(branches)] as const, floors[room]];
    if (floor === undefined) missed.push(`${room} has no floor of coverage in test/runner/coverage.ts`);
    for (const [index, kind] of ['lines', 'branches'].entries()) {
      const [has, needs] = [got[index] as number, floor?.[index] ?? 0];
      if (has < needs) missed.push(`${room}: ${has.toFixed(1)} % of ${kind} are covered, the floor is ${needs}`);
    }
    const cells = [...got, ...(floor ?? [])].map((value) => value.toFixed(0).padStart(5));
    return `${room.padEnd(16)}${cells.join('')}`;
  });
  const head = `${''.padEnd(16)}${['lines', 'branches', 'floors'].join(' ')}`;
  return { table: [head, ...rows].join('\n'), missed };
}

/** Returns the folder to which a floor applies: a folder of `src`, the client, or the pages. */
function roomOf(file: string): string {
  const [top = '', folder = ''] = file.split(sep);
  return top === 'src' || folder === 'client' ? `${top}/${folder}` : top;
}
