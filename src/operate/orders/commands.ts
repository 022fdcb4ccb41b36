import { Command, Option } from 'commander';
import { createOrderSearch } from '../../mysql/order-search.js';
import { ORDER_STATES } from '../../core/order.js';
import { isServed, ORDER_FILTER_NEEDS } from '../../core/ports/order-search.js';
import { EXPORT_FORMATS, EXPORT_MAX, type ExportFormat } from '../../http/export-lines.js';
import { moneyCommands } from './money-commands.js';
import { orderPages } from './order-pages.js';
import { filterOf, type FilterQuery } from './routes.js';
import { withConfigured } from '../../process/connections.js';
import { UsageError } from '../../process/cli-error.js';
import { checkSpan, parseSaleId, parseTime, parseUserId, parseWhole } from '../../process/options.js';
import { printAll } from '../../process/print.js';

type Flags = FilterQuery & { readonly limit?: number; readonly format: ExportFormat };

const EXAMPLES = `
Give a user, a sale or a start time. A state alone would read every order. State paid includes orders refunded in part.

Examples:
  seckill orders export --sale 7 > orders.csv
  seckill orders export --from -1d --state paid --format jsonl
  seckill orders export --user alice --limit 20
  seckill orders export --paid-from -1h --paid-to -2m --format jsonl

Reads MySQL only, page by page. In CSV, an apostrophe precedes ids, and cells that a spreadsheet would take for a formula. JSON
lines are exact. A payment may become visible seconds after its time, so let --paid-to end two minutes ago. Exit codes: 0 done, 1 MySQL is down, 2 wrong usage.`;

export function ordersCommand(): Command {
  const orders = new Command('orders')
    .description('find, export, cancel and refund orders')
    .addHelpText('after', EXAMPLES);
  orders
    .command('export')
    .description('print orders as CSV or JSON lines')
    .option('--user <userId>', 'only orders of this buyer, newest first', parseUserId)
    .option('--sale <saleId>', 'only orders of this sale', parseSaleId)
    .addOption(new Option('--state <state>', 'only orders in this state').choices(ORDER_STATES))
    .option('--from <time>', 'only orders made at this time or later: ISO 8601, or -2h', parseTime)
    .option('--to <time>', 'only orders made before this time', parseTime)
    .option('--paid-from <time>', 'only orders paid at this time or later, in the order of their payments', parseTime)
    .option('--paid-to <time>', 'only orders paid before this time', parseTime)
    .option('--limit <count>', 'maximum number of orders', parseWhole(1, EXPORT_MAX))
    .addOption(new Option('--format <format>', 'output format').choices(EXPORT_FORMATS).default('csv'))
    .addHelpText('after', EXAMPLES)
    .action(exportOrders);
  for (const command of moneyCommands()) orders.addCommand(command);
  return orders;
}

async function exportOrders({ limit = EXPORT_MAX, format, ...flags }: Flags): Promise<void> {
  const { from, to, paidFrom, paidTo } = flags;
  checkSpan({ from, to, paidFrom, paidTo });
  const filter = filterOf(flags);
  if (!isServed(filter)) throw new UsageError(ORDER_FILTER_NEEDS);
  await withConfigured('orders', ['mysql', 'redis'], async (connections) => {
    for await (const text of orderPages(createOrderSearch(connections.mysql()), filter, { format, limit })) {
      if (!(await printAll(text))) return;
    }
  });
}
