import { CommanderError } from 'commander';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryLock } from '../deploy/local/stack/processes.js';
import { REPO_DIR } from '../deploy/local/stack/paths.js';
import { StackError } from '../deploy/local/stack/stack-error.js';
import { listeningPorts, claimedPorts, pickFreePorts, type ClaimedPort } from '../deploy/local/stack/ports.js';
import { buildPagesIfOlder } from '../deploy/local/pages.js';
import { openStack, type Stack, type StackOptions } from '../deploy/local/stack/stack.js';
import { build } from './chaos/harness/commands.js';
import { openControls } from './chaos/harness/stack-controls.js';
import { prepareStack } from './chaos/own-stacks.js';
import { readFacts } from './chaos/report.js';
import { affectedTests } from './runner/changed.js';
import { coverageByRoom } from './runner/coverage.js';
import { runMocha, type Counts } from './runner/mocha.js';
import { LANES, readOptions, type Folder, type TestOptions } from './runner/options.js';
import { Outputs } from './runner/output.js';
import { addResults, isWanted, writeResults, type FolderResult, type RunResults } from './runner/results.js';

/**
 * `npm test`: every folder of test/ on servers of its own (other ports and other folders than `npm start`). Ends with one
 * line: `N passed, N failed`.
 */
const STACK_DIR = join(REPO_DIR, '.stack-test');
/** Its files share no name, so they run beside each other; those that wait longest begin. */
const PARALLEL: readonly Folder[] = ['contract'];
const PARALLEL_JOBS = 2;
/** They compute, and the others wait for servers with limits of time. */
const GIVE_WAY: readonly Folder[] = ['unit', 'guard', 'simulation'];
/** Files of a part that goes to the stack which is free first: a start of mocha costs three seconds, and parts end unevenly. */
const PART_FILES = 4;
const BEGIN_WITH = ['purchase-channel', 'delivery-source', 'rocketmq-connection', 'held-delivery', 'order-channels'];

const REASON_LAST_LINES = 6;

// Brokers live for minutes here and are killed and started again: too short for the optimizing compiler to pay off.
process.env.JAVA_TOOL_OPTIONS ??= '-XX:TieredStopAtLevel=1';

const { folders, mochaArgs, fileParts, changedSince } = options();
const startedMs = Date.now();
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => stopping.abort(new StackError('The tests were stopped.')));
}
const outputs = new Outputs();
/** Where the folders below leave their coverage; null when not all of their tests are run. */
const COVERED: readonly Folder[] = ['unit', 'contract'];
const isAll = mochaArgs.length === 0 && fileParts.length === 0 && changedSince === null;
const isWhole = isAll && COVERED.every((folder) => folders.includes(folder));
const coverageDir = isWhole ? mkdtempSync(join(tmpdir(), 'seckill-coverage-')) : null;
const uncovered = new Set<Folder>(COVERED);
/** Begins when the last covered folder has ended: other lanes are still under way then. */
let coverage: Promise<void> = Promise.resolve();
let counts: Counts = { passed: 0, failed: 0, skipped: 0, failures: [] };
const byFolder: Partial<Record<Folder, FolderResult>> = {};
let versions: RunResults['versions'] = { Node: process.versions.node };

const files = chooseFiles();
const chosen = (lane: readonly Folder[]): Folder[] => lane.filter((folder) => (files.get(folder) ?? []).length > 0);
const first = runFolders(chosen(LANES.first));
if (chosen([...LANES.stack, ...LANES.faults, ...LANES.anyStack, ...LANES.secure]).length > 0) await runOnStacks();
else await first.then(() => runFolders(chosen([...LANES.bare, ...LANES.background])));
await coverage;
end();

function options(): TestOptions {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exit(error.exitCode === 0 ? 0 : 2);
  }
}

/** By folder. Ends the process where a choice by --changed is empty. */
function chooseFiles(): Map<Folder, string[]> {
  const isNamed = (file: string): boolean => fileParts.length === 0 || fileParts.some((part) => file.includes(part));
  const all = new Map(folders.map((folder) => [folder, testFiles(folder).filter(isNamed)]));
  if (changedSince === null) return all;
  try {
    const affected = affectedTests(changedSince);
    console.log(affected.lines.join('\n'));
    for (const [folder, names] of all)
      all.set(
        folder,
        names.filter((name) => affected.files.has(name)),
      );
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    console.error(error.message);
    process.exit(2);
  }
  if ([...all.values()].every((names) => names.length === 0)) {
    console.log('0 passed, 0 failed');
    process.exit(0);
  }
  return all;
}

function testFiles(folder: Folder): string[] {
  const path = join(REPO_DIR, 'test', folder);
  if (!existsSync(path)) return [];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  const rank = (name: string): number => (BEGIN_WITH.includes(name.slice(0, -'.test.ts'.length)) ? 0 : 1);
  return names
    .filter((name) => name.endsWith('.test.ts'))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((name) => join('test', folder, name));
}

/** One after the other, each in a process of its own: a test that kills or leaks cannot reach the next folder. */
async function runFolders(lane: readonly Folder[], env: NodeJS.ProcessEnv = process.env): Promise<void> {
  for (const folder of lane) {
    await runFiles(folder, folder, files.get(folder) ?? [], env);
    if (coverageDir !== null && uncovered.delete(folder) && uncovered.size === 0) coverage = checkCoverage(coverageDir);
  }
}

/** The parts that no lane has begun yet, in turn with the other lanes. */
async function runParts(parts: Part[], env: NodeJS.ProcessEnv): Promise<void> {
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    await runFiles(part.folder, part.title, part.files, env);
  }
}

async function runFiles(
  folder: Folder,
  title: string,
  names: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  if (stopping.signal.aborted) return;
  const output = outputs.open();
  const beganMs = Date.now();
  output.write(`\n== ${title}\n`);
  const parallel = PARALLEL.includes(folder) ? ['--parallel', '--jobs', String(PARALLEL_JOBS)] : [];
  const collect = coverageDir !== null && COVERED.includes(folder) ? { NODE_V8_COVERAGE: coverageDir } : {};
  const how = {
    options: [...parallel, ...mochaArgs],
    env: { ...env, ...collect },
    givesWay: GIVE_WAY.includes(folder),
  };
  const ran = await runMocha(names, how, output, stopping.signal);
  add(ran);
  const { passed, failed, skipped } = ran;
  byFolder[folder] = addResults(byFolder[folder], { passed, failed, skipped, tookMs: Date.now() - beganMs });
  const tookS = Math.round((Date.now() - beganMs) / 1000);
  output.write(`${title}: ${tookS} s, from ${Math.round((beganMs - startedMs) / 1000)} s on\n`);
  output.end();
}

interface Part {
  readonly folder: Folder;
  readonly title: string;
  readonly files: readonly string[];
}

/** Of the folders that either stack can run. */
function partsOf(lane: readonly Folder[]): Part[] {
  return lane.flatMap((folder) => {
    const all = files.get(folder) ?? [];
    const count = mochaArgs.length > 0 ? 1 : Math.ceil(all.length / PART_FILES); // of a few tests the starts are the most
    return Array.from({ length: count }, (_, part) => ({
      folder,
      title: count === 1 ? folder : `${folder} ${part + 1} of ${count}`,
      files: all.filter((_name, index) => index % count === part),
    }));
  });
}

async function runOnStacks(): Promise<void> {
  const lock = tryLock(`${STACK_DIR}.lock`);
  if ('heldBy' in lock) {
    addFailure('npm test', `Process ${lock.heldBy} runs these tests already; wait for its end.`);
    return;
  }
  const parts = partsOf(chosen(LANES.anyStack));
  const stacks: [Stack, readonly Folder[]][] = [];
  for (const [dir, lane] of [
    [STACK_DIR, chosen(LANES.stack)],
    [`${STACK_DIR}-faults`, chosen(LANES.faults)],
  ] as const) {
    const taken = stacks.flatMap(([stack]) => claimedPorts(stack.ports));
    // parts alone need one stack, or both where there are several
    const isNeeded = lane.length > 0 || parts.length > stacks.length;
    if (isNeeded) stacks.push([await clearedStack(dir, taken), lane]);
  }
  try {
    const built = Promise.all([build(stopping.signal), buildPagesIfOlder(stopping.signal)]);
    const booted = Promise.all([built, first, ...stacks.map(([stack]) => boot(stack))]);
    const own = stacks.map(([stack, lane]) => booted.then(() => runFolders(lane, envOf(stack))));
    const lanes = stacks.map(async ([stack], index) => {
      await own[index];
      await runParts(parts, envOf(stack));
      await stack.down({ signal: 'SIGKILL' }); // its data is not needed again, and a broker is never quite idle
    });
    // After the boot: the programs of a first run are downloaded once, and ports that are taken are seen. Where both stacks have
    // folders of their own, after those of one: the newcomer starts whole stacks, and all at once made a load of 24 on two cores.
    const begin = own.length > 1 ? Promise.race(own) : booted;
    const bare = begin.then(async () => {
      await runFolders(chosen(LANES.bare));
      const taken = stacks.flatMap(([stack]) => claimedPorts(stack.ports));
      const secure = chosen(LANES.secure);
      if (secure.length > 0) await runOnFurtherStack('secure', taken, (env) => runFolders(secure, env));
      if (parts.length > 1) await runOnFurtherStack('parts', taken, (env) => runParts(parts, env));
    });
    const background = booted.then(() => runFolders(chosen(LANES.background)));
    const results = await Promise.allSettled([bare, background, ...lanes]);
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    addFailure('the stack of the tests', error.message);
  } finally {
    await Promise.all(stacks.map(([stack]) => stack.down({ signal: 'SIGKILL' })));
    lock.release();
  }
}

function envOf(stack: Stack): NodeJS.ProcessEnv {
  return { ...process.env, ...stack.env(), SECKILL_TEST_STACK: stack.dir };
}

/** Work for a stack that lives as long as it: one with TLS and access control, or one like those that run already. */
async function runOnFurtherStack(
  kind: 'secure' | 'parts',
  taken: readonly ClaimedPort[],
  work: (env: NodeJS.ProcessEnv) => Promise<void>,
): Promise<void> {
  if (stopping.signal.aborted) return;
  const stack = await clearedStack(`${STACK_DIR}-${kind}`, taken, { secure: kind === 'secure' });
  try {
    await boot(stack);
    await work(envOf(stack));
  } finally {
    await stack.down({ signal: 'SIGKILL' });
  }
}

/**
 * What an earlier run left is removed, so that no test depends on it.
 * @param taken ports of a stack that is about to start
 */
async function clearedStack(
  dir: string,
  taken: readonly ClaimedPort[],
  options: Pick<StackOptions, 'secure'> = {},
): Promise<Stack> {
  await openStack({ dir, ports: 'free' }).down({ signal: 'SIGKILL' });
  rmSync(dir, { recursive: true, force: true });
  return openStack({ dir, ports: pickFreePorts([...listeningPorts(), ...taken]), ...options });
}

async function boot(stack: Stack): Promise<void> {
  await stack.up({ topics: false, signal: stopping.signal });
  await prepareStack(stack);
  if (!isWanted()) return;
  const controls = await openControls(stack.dir, stack.env());
  versions = (await readFacts(controls)).versions;
  await controls.close();
}

function add(more: Counts): void {
  counts = {
    passed: counts.passed + more.passed,
    failed: counts.failed + more.failed,
    skipped: counts.skipped + more.skipped,
    failures: [...counts.failures, ...more.failures],
  };
}

/** Never rejects. */
async function checkCoverage(folder: string): Promise<void> {
  if (stopping.signal.aborted) return;
  const output = outputs.open();
  try {
    const { table, missed } = await coverageByRoom(folder);
    output.write(`\nCoverage by ${COVERED.join(' and ')} tests, percent\n${table}\n`);
    for (const sentence of missed) addFailure('coverage', sentence);
  } catch (error) {
    addFailure('coverage', (error as Error).message);
  }
  output.end();
  rmSync(folder, { recursive: true, force: true });
}

/** What failed before or beside the tests themselves. */
function addFailure(title: string, reason: string): void {
  add({ passed: 0, failed: 1, skipped: 0, failures: [{ title, reason }] });
}

/** The first line of a reason, and the last ones: a program whose output is the reason says there why it ended. */
function shortened(reason: string): string {
  const lines = reason.split('\n').filter((line) => line.trim() !== '');
  return [...lines.slice(0, 1), ...lines.slice(1).slice(-REASON_LAST_LINES)].map((line) => `  ${line}`).join('\n');
}

function end(): never {
  const { passed, failed, skipped, failures } = counts;
  writeResults({ folders: byFolder, failures, versions });
  // said again where it is seen: hundreds of lines may stand between a failure and the end
  for (const { title, reason } of failures) console.log(`FAILED ${title}\n${shortened(reason)}`);
  console.log(`took ${Math.round((Date.now() - startedMs) / 1000)} s`);
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  process.exit(failed > 0 || passed === 0 || stopping.signal.aborted ? 1 : 0);
}
