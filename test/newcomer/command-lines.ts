import { Command, CommanderError } from 'commander';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import sinon from 'sinon';
import { parseOptions as parseBenchOptions } from '../../bench/options.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { chooseScenarios } from '../chaos/scenario.js';
import { SCENARIOS } from '../chaos/scenarios/list.js';
import { MUTANTS } from '../mutants/mutants.js';
import { readOptions as readTestOptions } from '../runner/options.js';

/** The commands of this repository, each as its program defines it. */
export interface CommandLines {
  readonly seckill: Command;
  /** `npm start` runs its `up`, `npm run stack` its `stack`. */
  readonly local: Command;
  readonly chaos: Command;
  readonly simulate: Command;
  readonly mutants: Command;
  readonly matrix: Command;
}

let loaded: Promise<CommandLines> | undefined;
/** Whether commands are only parsed, without their actions. */
let onlyParsed = true;
const STOPPED = new Error('stopped before its action');

/** Loads the programs up to the point where they parse their own arguments. */
export const loadCommandLines = (): Promise<CommandLines> => (loaded ??= load());

async function load(): Promise<CommandLines> {
  return {
    seckill: await definedBy(() => import('../../src/cli/main.js')),
    local: await definedBy(() => import('../../deploy/local/main.js')),
    chaos: await definedBy(() => import('../chaos/main.js')),
    simulate: await definedBy(() => import('../simulation/main.js')),
    mutants: await definedBy(() => import('../mutants/main.js')),
    matrix: await definedBy(() => import('../matrix/main.js')),
  };
}

/** Returns the command that a program defines, by stopping the program when it calls parse. */
async function definedBy(importIt: () => Promise<unknown>): Promise<Command> {
  const found: Command[] = [];
  const parse = sinon.stub(Command.prototype, 'parse').callsFake(function (this: Command) {
    found.push(this);
    throw STOPPED; // the program would start its work here
  });
  const parseAsync = sinon.stub(Command.prototype, 'parseAsync').callsFake(function (this: Command) {
    found.push(this);
    return Promise.resolve(this);
  });
  try {
    await importIt();
  } catch (error) {
    if (error !== STOPPED) throw error;
  } finally {
    parse.restore();
    parseAsync.restore();
  }
  const [command] = found;
  if (command === undefined) throw new Error('this program defines no command line');
  command.hook('preAction', () => {
    if (onlyParsed) throw STOPPED;
  });
  return throwing(command);
}

/** Makes a command and its subcommands throw errors instead of printing them. */
function throwing(command: Command): Command {
  command.exitOverride((error) => {
    throw error;
  });
  command.configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
  command.commands.forEach(throwing);
  return command;
}

/** Runs `seckill <args>` in this process. @returns the exit code, and stdout (after a failure, also stderr) */
export async function runSeckill(args: readonly string[]): Promise<{ output: string; exitCode: number }> {
  const { seckill } = await loadCommandLines();
  const { report } = await import('../../src/cli/run-command-line.js'); // main.js itself throws its errors
  const before = process.exitCode;
  const written: string[] = [];
  const complaints: string[] = [];
  const stdout = sinon.stub(process.stdout, 'write').callsFake((chunk) => written.push(String(chunk)) > 0);
  const stderr = sinon.stub(process.stderr, 'write').callsFake((chunk) => complaints.push(String(chunk)) > 0);
  onlyParsed = false;
  process.exitCode = 0;
  try {
    await seckill.parseAsync([...args], { from: 'user' });
  } catch (error) {
    process.exitCode = report(error);
  } finally {
    stdout.restore();
    stderr.restore();
    onlyParsed = true;
  }
  const exitCode = Number(process.exitCode);
  process.exitCode = before;
  return { output: [...written, ...(exitCode === 0 ? [] : complaints)].join(''), exitCode };
}

const SCRIPTS = (
  JSON.parse(readFileSync(join(REPO_DIR, 'package.json'), 'utf8')) as { scripts: Readonly<Record<string, string>> }
).scripts;

/** Replaces placeholders for the reader's own values. Every id and number may be 1, and two names are times. */
const asTyped = (text: string): string =>
  text
    .replace(/<[A-Za-z]+>/g, '1')
    .replace(/\$(?:FROM|TO)\b/g, '-1d')
    .replace(/\$[A-Z]+\b/g, '1')
    .replace(/…/g, '');

/**
 * Returns what is wrong with a documented command, one sentence each.
 * @param inline allows the mere beginning of a command, without required arguments
 */
export function mistakesOf(lines: CommandLines, text: string, inline: boolean): string[] {
  return simpleCommands(asTyped(text)).flatMap((words) => {
    const mistake = mistakeOf(lines, words, inline);
    return mistake === null ? [] : [mistake];
  });
}

/** Splits a line into the commands between `|`, `&&`, `;`, parentheses and redirections, each as words. */
function simpleCommands(text: string): string[][] {
  const tokens = text.match(/'[^']*'|"[^"]*"|[^\s'"|&;()<>]+|[|&;()<>]+/g) ?? [];
  const commands: string[][] = [[]];
  for (const token of tokens) {
    if (/^[|&;()<>]/.test(token)) commands.push([]);
    else commands.at(-1)?.push(token.replace(/^(['"])(.*)\1$/, '$2'));
  }
  return commands.filter((words) => words.length > 0);
}

function mistakeOf(lines: CommandLines, [program, ...args]: readonly string[], inline: boolean): string | null {
  switch (program) {
    case 'seckill':
      return parseMistake(lines.seckill, args, inline);
    case 'npm':
      return npmMistake(lines, args, inline);
    case 'npx':
    case 'node':
      if (args[0] === 'dist/cli/main.js') return parseMistake(lines.seckill, args.slice(1), inline);
      return missingFile(args);
    case undefined:
    default:
      return null; // a program of the shell or the system
  }
}

function npmMistake(lines: CommandLines, args: readonly string[], inline: boolean): string | null {
  const at = args.includes('--') ? args.indexOf('--') : args.length;
  const [own, passed] = [args.slice(0, at).filter((word) => !word.startsWith('-')), args.slice(at + 1)];
  if (['ci', 'i', 'pack'].includes(own[0] ?? '')) return null; // npm's own commands
  const script = own[0] === 'run' ? own[1] : own[0];
  if (script === undefined || !(script in SCRIPTS)) return `package.json has no script ${script}`;
  if (own.length > (own[0] === 'run' ? 2 : 1)) return `npm keeps ${own.at(-1)} for itself: -- is missing`;
  switch (script) {
    case 'start':
      return parseMistake(lines.local, ['up', ...passed], inline);
    case 'stack':
      return parseMistake(lines.local, ['stack', ...passed], inline);
    case 'chaos':
      return parseMistake(lines.chaos, passed, inline) ?? unknownScenario(passed);
    case 'mutants':
      return parseMistake(lines.mutants, passed, inline) ?? unknownMutant(lines.mutants);
    case 'test:matrix':
      return parseMistake(lines.matrix, passed, inline);
    case 'seckill':
    case 'simulate':
      return parseMistake(lines[script], passed, inline);
    case 'bench':
      return refusalOf(() => void parseBenchOptions(passed, refuse));
    case 'test':
      return refusalOf(() => void readTestOptions(passed, () => undefined));
    default:
      return passed.length === 0 ? null : `npm run ${script} takes no arguments that a test knows`;
  }
}

/** Errors that are accepted if only the beginning of a command is shown. */
const INCOMPLETE = ['commander.help', 'commander.missingArgument', 'commander.optionMissingArgument'];

function parseMistake(command: Command, args: readonly string[], inline: boolean): string | null {
  return refusalOf(() => void command.parse([...args], { from: 'user' }), inline ? INCOMPLETE : []);
}

function refusalOf(parse: () => void, allowed: readonly string[] = []): string | null {
  try {
    parse();
    return null;
  } catch (error) {
    if (error === STOPPED) return null;
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 || allowed.includes(error.code) ? null : error.message;
  }
}

const refuse = (exitCode: number): never => {
  throw new CommanderError(exitCode, 'bench', 'bench refuses it');
};

function unknownScenario([verb, ...ids]: readonly string[]): string | null {
  if (verb !== 'run') return null;
  const named = ids.filter((id, index) => !id.startsWith('-') && !ids[index - 1]?.startsWith('--'));
  const { unknown } = chooseScenarios(SCENARIOS, named);
  return unknown.length === 0 ? null : `no chaos scenario is called ${unknown.join(', ')}`;
}

function unknownMutant({ args }: Command): string | null {
  const unknown = args.find((name) => !MUTANTS.some((mutant) => mutant.name === name));
  return unknown === undefined ? null : `there is no mutant ${unknown}`;
}

/** Returns the first path of this repository that does not exist, compared up to its first wildcard. */
function missingFile(args: readonly string[]): string | null {
  const paths = args
    .filter((word) => /^(src|test|bench|deploy|examples)\//.test(word))
    .map((path) => path.replace(/\*.*$/, ''));
  const missing = paths.find((path) => !existsSync(join(REPO_DIR, path)));
  return missing === undefined ? null : `there is no ${missing}`;
}
