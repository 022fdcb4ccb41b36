import { Argument, Command, InvalidArgumentError } from 'commander';
import { COMMAND_NAMES, COMMANDS, FOLDER_NAMES, isCommand, type CommandName, type Folder } from './commands.js';

export interface TestOptions {
  readonly commands: readonly CommandName[];
  /** All files of these folders run, whatever their command. */
  readonly folders: readonly Folder[];
  /** Passed on to mocha. */
  readonly mochaArgs: readonly string[];
  /** Parts of paths. Only files whose path contains one of them run. Empty: all files run. */
  readonly fileParts: readonly string[];
  /** Ref to compare with the working tree. Null: every test runs. */
  readonly changedSince: string | null;
  /** Folder for the coverage of unit and contract tests, for `npm run test:all`, or null. */
  readonly coverageInto: string | null;
  /** Size of integration/webhooks.test.ts. Null: its default. */
  readonly webhooks: number | null;
}

const WEBHOOKS_MAX = 1_000_000;

function parseWebhooks(text: string): number {
  const deliveries = /^[1-9][0-9]{0,6}$/.test(text) ? Number(text) : Infinity;
  if (deliveries > WEBHOOKS_MAX) throw new InvalidArgumentError(`must be a whole number from 1 to ${WEBHOOKS_MAX}.`);
  return deliveries;
}

const isFolder = (name: string): name is Folder => (FOLDER_NAMES as readonly string[]).includes(name);

/** @throws CommanderError for `--help` and for wrong use; its message is already printed */
export function readOptions(args: readonly string[], write?: (text: string) => void): TestOptions {
  const width = Math.max(...COMMAND_NAMES.map((name) => name.length));
  const list = COMMAND_NAMES.map((name) => `  ${name.padEnd(width)}  ${COMMANDS[name].about}`).join('\n');
  const command = new Command('npm test --')
    .description('Runs tests on their own servers. Never touches `npm start` and its data.')
    .addArgument(
      new Argument('[names...]', 'commands below, or folders of test/ (default: core)').choices([
        ...new Set([...COMMAND_NAMES, ...FOLDER_NAMES]),
      ]),
    )
    .option('-g, --grep <pattern>', 'only tests whose title matches')
    .option('-f, --files <part...>', 'only test files whose path contains one of these')
    .option('-b, --bail', 'end a process of mocha at its first failure')
    .option('-c, --changed [ref]', 'only test files that the changes since <ref> (default: main) can affect')
    .option('--coverage-into <folder>', 'write the raw coverage of unit and contract tests there')
    .option('--webhooks <deliveries>', 'deliveries of integration/webhooks (default: 4000)', parseWebhooks)
    .addHelpText(
      'after',
      `\nCommands:\n${list}\n\n` +
        '`npm run test:all` runs all of them, then the simulation, the planted bugs and MySQL 8.0.\n' +
        '--changed follows imports, files that tests read, and programs that tests start.\n' +
        'A file that fails runs again, alone, at the end. If it passes then, it is reported as shaky and does not fail the run,\n' +
        'unless the same file was shaky twice in ten runs of this checkout.\n' +
        'The last line counts: N passed, N failed.\n' +
        'Exit codes: 0 all passed, or nothing is affected; 1 something failed or nothing ran; 2 wrong usage.',
    )
    .exitOverride();
  if (write !== undefined) command.configureOutput({ writeOut: write, writeErr: write });
  command.parse(args, { from: 'user' });
  const flags = command.opts<{
    grep?: string;
    bail?: boolean;
    changed?: string | true;
    files?: string[];
    coverageInto?: string;
    webhooks?: number;
  }>();
  const names = command.args;
  const mayHaveMore = names.length === 0 && (flags.changed !== undefined || flags.files !== undefined);
  return {
    commands: mayHaveMore ? COMMAND_NAMES : names.length === 0 ? ['core'] : names.filter(isCommand),
    folders: names.filter((name) => isFolder(name) && !isCommand(name)) as Folder[],
    mochaArgs: [...(flags.grep === undefined ? [] : ['--grep', flags.grep]), ...(flags.bail ? ['--bail'] : [])],
    fileParts: flags.files ?? [],
    changedSince: flags.changed === true ? 'main' : (flags.changed ?? null),
    coverageInto: flags.coverageInto ?? null,
    webhooks: flags.webhooks ?? null,
  };
}
