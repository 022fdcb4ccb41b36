import { Argument, Command } from 'commander';

/**
 * The quick tests come first, while the stacks boot: beside all other programs they would be slow ones. Much of the rest waits:
 * for timers of the broker, for servers to come back, for deadlines. So three lanes run beside each other, two of them on a
 * stack each, since a scenario stops servers under everybody who uses them; the one without servers begins when one of these has
 * nothing of its own left. Within a lane one folder follows the other; a
 * stack that is done with its own takes its share of those that `anyStack` names, those that take longest first. When the lane
 * without servers is done, a third stack starts in its place: first one with TLS and access control everywhere, then one more
 * for a share of those.
 */
export const LANES = {
  first: ['unit', 'guard'],
  bare: ['newcomer', 'hostile', 'deploy'],
  background: ['simulation'],
  stack: ['contract', 'lua', 'schemathesis', 'image'],
  faults: ['scenario'],
  anyStack: ['browser', 'integration'],
  secure: ['secure'],
} as const;
export type Folder = (typeof LANES)[keyof typeof LANES][number];
const FOLDERS: readonly Folder[] = Object.values(LANES).flat();

/** Run only when they are named: what they need is downloaded from elsewhere. */
const ON_REQUEST: readonly Folder[] = ['schemathesis', 'deploy', 'image'];

export interface TestOptions {
  readonly folders: readonly Folder[];
  /** Passed on to mocha. */
  readonly mochaArgs: readonly string[];
  /** Only files whose path contains one of these; empty: all of them. */
  readonly fileParts: readonly string[];
  /** What the working tree is compared with; null: every test is run. */
  readonly changedSince: string | null;
}

/** @throws CommanderError for `--help` and for wrong use, with what there was to say already written */
export function readOptions(args: readonly string[], write?: (text: string) => void): TestOptions {
  const command = new Command('npm test --')
    .description('Runs the tests on servers of its own; what `npm start` keeps is never touched.')
    .addArgument(
      new Argument('[folders...]', `those of test/ to run; none: all but ${ON_REQUEST.join(', ')}`).choices(FOLDERS),
    )
    .option('-g, --grep <pattern>', 'only tests whose title matches')
    .option('-f, --files <part...>', 'only test files whose path contains one of these')
    .option('-b, --bail', 'end a folder at its first failure')
    .option('-c, --changed [ref]', 'only test files that the changes since <ref> (default: main) can affect')
    .addHelpText(
      'after',
      '\nunit, guard, simulation, hostile, newcomer and deploy run without a stack; the others get one.\n' +
        '--changed follows imports, files that are read and programs that are started. Tests that start the programs notice\n' +
        'every change of src; name folders, before it, for less: npm test -- unit contract --changed\n' +
        'The last line counts: N passed, N failed.\n' +
        'Exit codes: 0 all passed, or nothing is affected; 1 something failed or nothing ran; 2 used wrongly.',
    )
    .exitOverride();
  if (write !== undefined) command.configureOutput({ writeOut: write, writeErr: write });
  command.parse(args, { from: 'user' });
  const { grep, bail, changed, files } = command.opts<{
    grep?: string;
    bail?: boolean;
    changed?: string | true;
    files?: string[];
  }>();
  return {
    folders: FOLDERS.filter((folder) =>
      command.args.length === 0 ? !ON_REQUEST.includes(folder) : command.args.includes(folder),
    ),
    mochaArgs: [...(grep === undefined ? [] : ['--grep', grep]), ...(bail ? ['--bail'] : [])],
    fileParts: files ?? [],
    changedSince: changed === true ? 'main' : (changed ?? null),
  };
}
