import { CommanderError } from 'commander';
import { buildPagesIfOlder } from '../deploy/local/pages.js';
import { StackError } from '../deploy/local/stack/stack-error.js';
import { buildIfOlder } from './chaos/harness/commands.js';
import { affectedTests } from './runner/changed.js';
import {
  claimsOf,
  filesOf,
  FOLDER_NAMES,
  folderOf,
  type Folder,
  isCommand,
  needsOf,
  stacksOf,
  testFiles,
} from './runner/commands.js';
import { commandLine, shown, sumOf } from './runner/counts.js';
import { fetchToolsOf } from './runner/fetch.js';
import { failedFile, runMocha, type FileResult } from './runner/mocha.js';
import { readOptions, type TestOptions } from './runner/options.js';
import { isWanted, writeResults, type RunResults } from './runner/results.js';
import { roomToRun } from './runner/room.js';
import { TestServers, type ServersName } from './runner/servers.js';
import { noteShaky } from './runner/shaky.js';

// `npm test`: prints each finished file and each failure at once. The last line: `N passed, N failed`.

// Brokers live only for minutes here, so the optimizing compiler would not pay off.
process.env.JAVA_TOOL_OPTIONS ??= '-XX:TieredStopAtLevel=1';

/** A busy machine does not explain more failed files than this. */
const SECOND_LOOKS_MAX = 5;
const REASON_LAST_LINES = 6;
/** Folders whose coverage is checked. */
const COVERED: readonly Folder[] = ['unit', 'contract'];

/** Files of one folder that run in one process. */
interface Part {
  readonly folder: Folder;
  readonly files: readonly string[];
}

const options = readOptionsOrExit();
if (options.webhooks !== null) process.env.WEBHOOK_DELIVERIES = String(options.webhooks);
const startedMs = Date.now();
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => stopping.abort(new StackError('The tests were stopped.')));
}
const results: FileResult[] = [];
const tookMs = new Map<Folder, number>();
const ran: { readonly name: string; readonly files: readonly string[]; readonly tookMs: number }[] = [];
let versions: RunResults['versions'] = { Node: process.versions.node };
let servers: TestServers | null = null;
try {
  servers = new TestServers(stopping.signal);
  const chosen = chooseFiles();
  const fetched = fetchToolsOf(chosen.map(({ name }) => name).filter(isCommand));
  for (const { name, stacks, files } of chosen) {
    const beganMs = Date.now();
    await fetched.get(name);
    await runParts(partsOf(files, stacks), stacks, servers);
    ran.push({ name, files, tookMs: Date.now() - beganMs });
    await servers.keepOnly('plain');
  }
  const shaky = await lookAgain(servers);
  if (isWanted()) versions = { ...versions, ...(await servers.versions()) };
  await servers.close();
  end(shaky);
} catch (error) {
  await servers?.close();
  if (!(error instanceof StackError)) throw error;
  results.push(failedFile('npm test', error.message));
  end([]);
}

function readOptionsOrExit(): TestOptions {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exit(error.exitCode === 0 ? 0 : 2);
  }
}

/** The files of each command, then the files of the folders. Exits if --changed selects no file. */
function chooseFiles(): { readonly name: string; readonly stacks: number; readonly files: readonly string[] }[] {
  const { commands, folders, fileParts, changedSince } = options;
  const affected = changedSince === null ? null : affectedOrExit(changedSince);
  const isChosen = (file: string): boolean =>
    (fileParts.length === 0 || fileParts.some((part) => file.includes(part))) && affected?.files.has(file) !== false;
  const chosen = [
    ...commands.map((name) => ({
      name: name as string,
      stacks: stacksOf(name),
      files: filesOf(name).filter(isChosen),
    })),
    {
      name: folders.join(' '),
      stacks: 1,
      files: testFiles().filter(
        (file) =>
          folders.includes(folderOf(file)) && isChosen(file) && !claimsOf(file).some((name) => commands.includes(name)),
      ),
    },
  ].filter(({ files }) => files.length > 0);
  if (affected !== null && chosen.length === 0) {
    console.log('0 passed, 0 failed');
    process.exit(0);
  }
  return chosen;
}

function affectedOrExit(ref: string): { readonly files: ReadonlySet<string> } {
  try {
    const affected = affectedTests(ref);
    console.log(affected.lines.join('\n'));
    return affected;
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    console.error(error.message);
    process.exit(2);
  }
}

/** One part per folder, or several if stacks share the work, because starting mocha costs seconds. */
function partsOf(files: readonly string[], stacks: number): Part[] {
  return FOLDER_NAMES.flatMap((folder) => {
    const all = files.filter((file) => folderOf(file) === folder);
    const { partFiles = all.length } = needsOf(folder);
    const count = stacks === 1 ? Math.min(all.length, 1) : Math.ceil(all.length / Math.max(partFiles, 1));
    return Array.from({ length: count }, (_, part) => ({
      folder,
      files: all.filter((_name, index) => index % count === part),
    }));
  });
}

/**
 * On each stack, parts with servers run one after another. Parts without servers run at the same time while the machine
 * has room. Promises about time run last, alone.
 */
async function runParts(parts: readonly Part[], stacks: number, on: TestServers): Promise<void> {
  const isTime = ({ folder }: Part): boolean => folder === 'time';
  const needs = ({ folder }: Part): 'none' | 'plain' | 'secure' => needsOf(folder).servers;
  const of = (kind: 'none' | 'plain' | 'secure'): Part[] =>
    parts.filter((part) => needs(part) === kind && !isTime(part));
  const built = parts.some((part) => needs(part) !== 'none')
    ? Promise.all([buildIfOlder(), buildPagesIfOlder(stopping.signal)])
    : Promise.resolve();
  built.catch(() => undefined); // awaited by the parts that use it
  const withServers = async (name: ServersName, queue: Part[]): Promise<void> => {
    if (queue.length === 0) return;
    const [env] = await Promise.all([on.envOf(name), built]);
    for (let part = queue.shift(); part !== undefined; part = queue.shift()) await runPart(part, env);
  };
  const plain = of('plain');
  const lanes = [
    withServers('plain', plain),
    stacks > 1 ? withServers('plain-2', plain) : Promise.resolve(),
    withServers('secure', of('secure')),
  ];
  const alone = new AbortController(); // no more parts with servers are running
  const withoutServers = async (): Promise<void> => {
    for (const [index, part] of of('none').entries()) {
      if (index > 0) await roomToRun(alone.signal); // the first one runs while the servers boot
      await runPart(part, process.env);
    }
  };
  const all = [Promise.all(lanes).finally(() => alone.abort()), withoutServers()];
  const failed = (await Promise.allSettled(all)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  await withServers('plain', parts.filter(isTime));
}

async function runPart({ folder, files }: Part, env: NodeJS.ProcessEnv): Promise<void> {
  if (stopping.signal.aborted) return;
  const beganMs = Date.now();
  const seconds = Math.round((beganMs - startedMs) / 1000);
  console.log(`\n== ${folder}: ${files.length === 1 ? files[0] : `${files.length} files`}, from ${seconds} s on`);
  results.push(...(await runFiles(folder, files, env, needsOf(folder).jobs)));
  tookMs.set(folder, (tookMs.get(folder) ?? 0) + Date.now() - beganMs);
}

function runFiles(folder: Folder, files: readonly string[], env: NodeJS.ProcessEnv, jobs = 1): Promise<FileResult[]> {
  const parallel = jobs > 1 && files.length > 1 ? ['--parallel', '--jobs', String(jobs)] : [];
  const { coverageInto } = options;
  const collect = coverageInto !== null && COVERED.includes(folder) ? { NODE_V8_COVERAGE: coverageInto } : {};
  const how = { options: [...parallel, ...options.mochaArgs], env: { ...env, ...collect }, signal: stopping.signal };
  return runMocha(files, how);
}

/**
 * Runs each failed file once more, alone.
 * @returns the files that passed this time
 */
async function lookAgain(on: TestServers): Promise<string[]> {
  const failed = [...new Set(results.filter(hasFailed).map(({ file }) => file))];
  if (failed.length === 0 || failed.length > SECOND_LOOKS_MAX || stopping.signal.aborted) return [];
  console.log(`\n== second look at ${failed.length === 1 ? 'a file' : `${failed.length} files`}`);
  const shaky: string[] = [];
  for (const file of failed) {
    const { servers: needed } = needsOf(folderOf(file));
    const env = needed === 'none' ? process.env : await on.envOf(needed);
    const again = await runFiles(folderOf(file), [file], env);
    if (again.length === 0 || again.some(hasFailed)) continue;
    shaky.push(file);
    results.splice(0, results.length, ...results.filter((result) => result.file !== file), ...again);
  }
  return shaky;
}

function hasFailed({ failed }: FileResult): boolean {
  return failed > 0;
}

/** Returns the first and the last lines of a reason. There, the output of a program says why it ended. */
function shortened(reason: string): string {
  const lines = reason.split('\n').filter((line) => line.trim() !== '');
  return [...lines.slice(0, 1), ...lines.slice(1).slice(-REASON_LAST_LINES)].map((line) => `  ${line}`).join('\n');
}

/** Prints the failures once more, then the counts. */
function end(shaky: readonly string[]): never {
  for (const file of noteShaky(shaky))
    results.push(failedFile(file, 'It passed only at its second try, for the second time in ten runs.'));
  const failures = results.flatMap((result) => result.failures);
  const folders: RunResults['folders'] = {};
  for (const [folder, ms] of tookMs)
    folders[folder] = { ...sumOf(results.filter(({ file }) => folderOf(file) === folder)), tookMs: ms };
  writeResults({ folders, failures, versions });
  console.log('');
  for (const { title, reason } of failures) console.log(`FAILED ${title}\n${shortened(reason)}`);
  if (shaky.length > 0) console.log(`${shaky.length} shaky: ${shaky.join(', ')}`);
  for (const { name, files, tookMs: ms } of ran) {
    const own = results.filter(({ file }) => files.includes(file));
    console.log(commandLine(name, ms, shown(sumOf(own))));
  }
  const counts = sumOf(results);
  console.log(`took ${Math.round((Date.now() - startedMs) / 1000)} s`);
  console.log(shown(counts));
  process.exit(counts.failed > 0 || counts.passed === 0 || stopping.signal.aborted ? 1 : 0);
}
