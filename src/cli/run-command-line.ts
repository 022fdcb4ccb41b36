import type { Writable } from 'node:stream';
import { inspect } from 'node:util';
import type { Command } from 'commander';
import { ConfigError } from '../core/config/load.js';
import { OperationalError } from '../core/errors.js';
import { isWhole } from '../core/text.js';
import { CliError, UsageError } from '../process/cli-error.js';
import { printable, printError } from '../process/print.js';

/** Exit codes: 0 success, 1 failure or partial success, 2 wrong usage. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Turns an error into a sentence and an exit code. Never rejects. */
export async function runCommandLine(program: Command, commands: readonly Command[]): Promise<void> {
  ignoreClosedPipe(process.stdout);
  program
    .configureOutput({
      writeOut: (text) => void process.stdout.write(printable(text)),
      writeErr: (text) => void process.stderr.write(printable(text)),
    })
    .showHelpAfterError('(add --help to see what this command takes)')
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : EXIT_USAGE));
  for (const command of commands) program.addCommand(inherit(command, program));
  try {
    if (!process.argv.every(isWhole))
      throw new UsageError('an argument is not valid UTF-8: check the argument and your locale.');
    await program.parseAsync();
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** A reader such as `head` may leave early. The command still finishes, and its exit code reports the result. */
export function ignoreClosedPipe(output: Writable): void {
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

/** Commander copies settings when it creates a subcommand, but our commands get their parent later. */
function inherit(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent);
  for (const child of command.commands) inherit(child, command);
  return command;
}

/** Prints an error that an operator can fix as one sentence. Any other error is a bug and is printed with its stack. */
export function report(error: unknown): number {
  if (error instanceof ConfigError || error instanceof UsageError) {
    printError(`seckill: ${error.message}`);
    return EXIT_USAGE;
  }
  if (error instanceof CliError || error instanceof OperationalError) {
    printError(`seckill: ${error.message}`);
    return EXIT_FAILED;
  }
  const sentence = sentenceOf(error);
  if (sentence !== null) {
    printError(`seckill: ${sentence}`);
    return EXIT_FAILED;
  }
  printError(`seckill: unexpected error ${inspect(error)}`);
  return EXIT_FAILED;
}

/** Returns advice for an error of the system or of a library if a setting causes it. Null for any other error. */
function sentenceOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code = '', path = 'a file' } = error as NodeJS.ErrnoException;
  if (code.startsWith('FAST_JWT_')) {
    return `the token key does not fit its algorithm (${error.message}): RS256 needs a public key in PEM, HS256 a secret.`;
  }
  switch (code) {
    case 'EADDRINUSE':
      return `${error.message}. Stop the program that listens there, or choose another port: --port or --operators-port (api), --metrics-port (worker, keeper); 0 picks a free one.`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `${path} cannot be used: ${error.message}. Check its permissions.`;
    case 'ENOENT':
      return `${path} does not exist.`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'ECONNREFUSED':
    case 'ETIMEDOUT':
      return `a server cannot be reached: ${error.message}. Check its address, and that it is running.`;
    default:
      return /\bsentinels?\b/i.test(error.message)
        ? `Redis cannot be reached: ${error.message}. Check REDIS_URL.`
        : null;
  }
}
