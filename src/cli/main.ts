import { Command } from 'commander';
import { apiCommand, keeperCommand, workerCommand } from './programs.js';
import { auditCommand } from './audit.js';
import { dlqCommand } from './dlq.js';
import { luaCommand } from './lua.js';
import { migrateCommand } from './migrate.js';
import { reconcileCommand } from './reconcile.js';
import { refundsCommand } from './refunds.js';
import { rulesCommand } from './rules.js';
import { runCommandLine } from './run-command-line.js';
import { saleCommand } from './sale.js';
import { switchCommand } from './switch.js';
import { tokenCommand } from './token.js';
import { topicsCommand } from './topics.js';
import { traceCommand } from './trace.js';

const seckill = new Command('seckill')
  .description('A flash-sale order system: sells exactly its stock, and loses no order in silence.')
  .version(process.env.npm_package_version ?? '0.1.0');

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
