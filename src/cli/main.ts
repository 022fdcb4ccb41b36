import { Command } from 'commander';
import { auditCommand } from './audit.js';
import { dlqCommand } from './dlq.js';
import { luaCommand } from './lua.js';
import { apiCommand, keeperCommand, workerCommand } from './programs.js';
import { reconcileCommand } from './reconcile.js';
import { refundsCommand } from './refunds.js';
import { rulesCommand } from './rules.js';
import { runCommandLine } from './run-command-line.js';
import { saleCommand } from './sale.js';
import { migrateCommand, tokenCommand, topicsCommand } from './setup.js';
import { switchCommand } from './switch.js';
import { traceCommand } from './trace.js';

const seckill = new Command('seckill')
  .description('A flash-sale order system: sells exactly its stock, and loses no order in silence.')
  .version(process.env.npm_package_version ?? '1.0.0')
  .addHelpText(
    'after',
    `
Settings are environment variables, such as MYSQL_URL; docs/configuration.md lists them. \`seckill <command> --help\`
shows examples. Times are ISO 8601, now, or from now: +10m, -2h, -1d.
Exit codes of every command: 0 done, 1 not done or done in part, 2 used wrongly (options or settings).`,
  );

await runCommandLine(seckill, [
  migrateCommand(),
  topicsCommand(),
  apiCommand(),
  workerCommand(),
  keeperCommand(),
  saleCommand(),
  dlqCommand(),
  reconcileCommand(),
  refundsCommand(),
  rulesCommand(),
  switchCommand(),
  auditCommand(),
  traceCommand(),
  luaCommand(),
  tokenCommand(),
]);
