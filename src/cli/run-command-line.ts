import type { Command } from 'commander';
import { ConfigError } from '../core/config/load.js';
import { OperationalError } from '../core/errors.js';
import { CliError, UsageError } from './cli-error.js';

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
export function report(error: unknown): number {
  if (error instanceof ConfigError || error instanceof UsageError) {
    console.error(`seckill: ${error.message}`);
    return EXIT_USAGE;
  }
  if (error instanceof CliError || error instanceof OperationalError) {
    console.error(`seckill: ${error.message}`);
    return EXIT_FAILED;
  }
  const sentence = sentenceOf(error);
  if (sentence !== null) {
    console.error(`seckill: ${sentence}`);
    return EXIT_FAILED;
  }
  console.error('seckill: unexpected error', error);
  return EXIT_FAILED;
}

/** What to do about errors of the system and of libraries that an operator causes by a setting. Null: none of these. */
function sentenceOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code = '', path = 'a file' } = error as NodeJS.ErrnoException;
  if (code.startsWith('FAST_JWT_')) {
    return `the key of the tokens does not fit its algorithm (${error.message}): RS256 needs a public key in PEM, HS256 a secret.`;
  }
  switch (code) {
    case 'EADDRINUSE':
      return `${error.message}. Stop what listens there, or choose another with --port.`;
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
      return `a server cannot be reached: ${error.message}. Check its address, and that it runs.`;
    default:
      return /\bsentinels?\b/i.test(error.message)
        ? `Redis cannot be reached: ${error.message}. Check REDIS_URL.`
        : null;
  }
}
