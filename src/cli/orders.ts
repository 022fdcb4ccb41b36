import { Command, Option } from 'commander';
import { createOrderSearch } from '../mysql/order-search.js';
import { loadConfig } from '../core/config/load.js';
import { ORDER_STATES, type OrderState } from '../core/order.js';
import { isServed, ORDER_FILTER_NEEDS, type OrderFilter } from '../core/ports/order-search.js';
import { EXPORT_FORMATS, EXPORT_MAX, type ExportFormat } from '../http/export-lines.js';
import { orderPages } from '../http/order-lines.js';
import { withConnections } from '../process/connections.js';
import { createLog } from '../process/telemetry.js';
import { UsageError } from '../process/cli-error.js';
import { checkSpan, parseSaleId, parseTime, parseUserId, parseWhole } from '../process/options.js';
import { printAll } from '../process/print.js';
import { withoutUndefined } from '../core/without-undefined.js';

interface Flags {
  readonly user?: string;
  readonly sale?: string;
  readonly state?: OrderState;
  readonly from?: number;
  readonly to?: number;
  readonly limit?: number;
  readonly format: ExportFormat;
}

const EXAMPLES = `
Name a user, a sale or a time from which on; a state alone would read every order there is.

Examples:
  seckill orders export --sale 7 > orders.csv
  seckill orders export --from -1d --state paid --format jsonl
  seckill orders export --user alice --limit 20

Reads MySQL only, page by page. In CSV a cell that a spreadsheet would take for a formula, or an id of which it would lose
digits, has an apostrophe in front; JSON lines are exact. Exit codes: 0 done, 1 MySQL is away, 2 used wrongly.`;

export function ordersCommand(): Command {
  const orders = new Command('orders').description('find and export orders').addHelpText('after', EXAMPLES);
  orders
    .command('export')
    .description('print orders as CSV or JSON lines')
    .option('--user <userId>', 'of this buyer, newest sale first', parseUserId)
    .option('--sale <saleId>', 'of this sale', parseSaleId)
    .addOption(new Option('--state <state>', 'in this state').choices(ORDER_STATES))
    .option('--from <time>', 'ordered at this time or later: ISO 8601, or -2h', parseTime)
    .option('--to <time>', 'ordered before this time', parseTime)
    .option('--limit <count>', 'at most so many', parseWhole(1, EXPORT_MAX))
    .addOption(new Option('--format <format>', 'how they are printed').choices(EXPORT_FORMATS).default('csv'))
    .addHelpText('after', EXAMPLES)
    .action(exportOrders);
  return orders;
}

async function exportOrders({ user, sale, state, from, to, limit = EXPORT_MAX, format }: Flags): Promise<void> {
  checkSpan({ from, to });
  const filter: OrderFilter = withoutUndefined({ userId: user, saleId: sale, state, fromMs: from, toMs: to });
  if (!isServed(filter)) throw new UsageError(ORDER_FILTER_NEEDS);
  const config = loadConfig(['mysql'], process.env);
  await withConnections(config, createLog('orders', 'error'), async (connections) => {
    for await (const text of orderPages(createOrderSearch(connections.mysql()), filter, { format, limit })) {
      if (!(await printAll(text))) return;
    }
  });
}
