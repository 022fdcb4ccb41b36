import type { Command } from 'commander';
import { ConfigError } from '../core/config/load.js';
import { OperationalError } from '../core/errors.js';
import { CliError } from './cli-error.js';

/** Exit codes: 0 done, 1 failed or done in part, 2 used wrongly. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs what the arguments of this process ask for. An error becomes a sentence and an exit code. Never rejects. */
export async function runCommandLine(program: Command, commands: readonly Command[]): Promise<void> {
  program
    .showHelpAfterError('(add --help to see what this command takes)')
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : EXIT_USAGE));
  for (const command of commands) program.addCommand(inherit(command, program));
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** Commander hands settings down only at the birth of a command, which is before it gets its parent here. */
function inherit(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent);
  for (const child of command.commands) inherit(child, command);
  return command;
}

/** What a person can mend is one sentence; anything else is our mistake and keeps its stack. */
function report(error: unknown): number {
  if (error instanceof ConfigError) {
    console.error(`seckill: ${error.message}`);
    return EXIT_USAGE;
  }
  if (error instanceof CliError || error instanceof OperationalError) {
    console.error(`seckill: ${error.message}`);
    return EXIT_FAILED;
  }
  const code = (error as NodeJS.ErrnoException | null)?.code;
  if (code === 'EADDRINUSE') {
    console.error(`seckill: ${(error as Error).message}. Stop what listens there, or choose another with --port.`);
    return EXIT_FAILED;
  }
  console.error('seckill: unexpected error', error);
  return EXIT_FAILED;
}
