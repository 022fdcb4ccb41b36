import { Command } from 'commander';
import { ConfigError } from '../core/config/load.js';
import { OperationalError } from '../core/errors.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';
import { auditCommand } from './audit.js';
import { chaosCommand } from '../../test/chaos/chaos-command.js';
import { CliError } from './cli-error.js';
import { dlqCommand } from './dlq.js';
import { migrateCommand } from './migrate.js';
import { apiCommand, keeperCommand, workerCommand } from './programs.js';
import { reconcileCommand } from './reconcile.js';
import { refundsCommand } from './refunds.js';
import { rulesCommand } from './rules.js';
import { saleCommand } from './sale.js';
import { stackCommand } from '../../deploy/local/stack-command.js';
import { switchCommand } from './switch.js';
import { tokenCommand } from './token.js';
import { topicsCommand } from './topics.js';
import { traceCommand } from './trace.js';
import { upCommand } from '../../deploy/local/up.js';

/** Exit codes: 0 done, 1 failed or done in part, 2 used wrongly. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const program = new Command('seckill')
  .description('A flash-sale order system: sells exactly its stock, and loses no order in silence.')
  .version(process.env.npm_package_version ?? '0.1.0')
  .showHelpAfterError('(add --help to see what this command takes)')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : EXIT_USAGE));

for (const make of [
  upCommand,
  stackCommand,
  migrateCommand,
  topicsCommand,
  apiCommand,
  workerCommand,
  keeperCommand,
  saleCommand,
  dlqCommand,
  reconcileCommand,
  refundsCommand,
  rulesCommand,
  switchCommand,
  auditCommand,
  traceCommand,
  chaosCommand,
  tokenCommand,
]) {
  program.addCommand(inherit(make(), program));
}

/** Commander hands settings down only at the birth of a command, which is before it gets its parent here. */
function inherit(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent);
  for (const child of command.commands) inherit(child, command);
  return command;
}

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}

/** What a person can mend is one sentence; anything else is our mistake and keeps its stack. */
function report(error: unknown): number {
  if (error instanceof ConfigError) {
    console.error(`seckill: ${error.message}`);
    return EXIT_USAGE;
  }
  if (error instanceof CliError || error instanceof StackError || error instanceof OperationalError) {
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
