import { once } from 'node:events';
import { Command, Option } from 'commander';
import { loadConfig } from '../core/config/load.js';
import { ORDER_STATES, type Order, type OrderState } from '../core/order.js';
import { isServed, ORDER_FILTER_NEEDS, type OrderFilter } from '../core/ports/order-search.js';
import { foundOrderBody } from '../http/routes/find-orders.js';
import { withOperator } from '../programs/operator.js';
import { createLog } from '../programs/telemetry.js';
import { UsageError } from './cli-error.js';
import { parseId, parseSaleId, parseTime, parseWhole } from './options.js';

interface Flags {
  readonly user?: string;
  readonly sale?: string;
  readonly state?: OrderState;
  readonly from?: number;
  readonly to?: number;
  readonly limit?: number;
  readonly format: 'csv' | 'jsonl';
}

const LIMIT_MAX = 1_000_000_000;
/** Orders of one page. */
const PAGE = 1000;

const EXAMPLES = `
Name a user, a sale or a time from which on; a state alone would read every order there is.

Examples:
  seckill orders export --sale 7 > orders.csv
  seckill orders export --from -1d --state paid --format jsonl
  seckill orders export --user alice --limit 20

Reads MySQL only, page by page. Exit codes: 0 done, 1 MySQL is away, 2 used wrongly.`;

export function ordersCommand(): Command {
  const orders = new Command('orders').description('find and export orders').addHelpText('after', EXAMPLES);
  orders
    .command('export')
    .description('print orders as CSV or JSON lines')
    .option('--user <userId>', 'of this buyer, newest sale first', parseId)
    .option('--sale <saleId>', 'of this sale', parseSaleId)
    .addOption(new Option('--state <state>', 'in this state').choices(ORDER_STATES))
    .option('--from <time>', 'ordered at this time or later: ISO 8601, or -2h', parseTime)
    .option('--to <time>', 'ordered before this time', parseTime)
    .option('--limit <count>', 'at most so many', parseWhole(1, LIMIT_MAX))
    .addOption(new Option('--format <format>', 'how they are printed').choices(['csv', 'jsonl']).default('csv'))
    .addHelpText('after', EXAMPLES)
    .action(exportOrders);
  return orders;
}

async function exportOrders({ user, sale, state, from, to, limit = LIMIT_MAX, format }: Flags): Promise<void> {
  const filter: OrderFilter = {
    ...(user === undefined ? {} : { userId: user }),
    ...(sale === undefined ? {} : { saleId: sale }),
    ...(state === undefined ? {} : { state }),
    ...(from === undefined ? {} : { fromMs: from }),
    ...(to === undefined ? {} : { toMs: to }),
  };
  if (!isServed(filter)) throw new UsageError(ORDER_FILTER_NEEDS);
  const config = loadConfig(['mysql'], process.env);
  await withOperator(config, createLog('orders', 'error'), async (operator) => {
    const search = operator.orderSearch();
    let [after, left] = [null as string | null, limit];
    if (format === 'csv') await print(`${COLUMNS.join(',')}\n`);
    do {
      const page = await search.page(filter, after, Math.min(PAGE, left));
      await print((page?.orders ?? []).map((order) => lineOf(order, format)).join(''));
      after = page?.next ?? null;
      left -= page?.orders.length ?? 0;
    } while (after !== null && left > 0 && !process.stdout.destroyed);
  });
}

/** Waits while the reader is slower than MySQL, so that no page piles up in memory. */
async function print(text: string): Promise<void> {
  const { stdout } = process;
  if (stdout.destroyed || stdout.write(text)) return;
  await Promise.race([once(stdout, 'drain'), once(stdout, 'close')]).catch(() => undefined);
}

const COLUMNS = [
  'orderId',
  'saleId',
  'userId',
  'requestId',
  'batchId',
  'quantity',
  'amountCents',
  'state',
  'reason',
  'createdAt',
  'expiresAt',
  'paidAt',
] as const;

/** No value needs a quote: ids, words, numbers and times hold no comma, quote or line end. */
export function lineOf(order: Order, format: Flags['format']): string {
  const body = foundOrderBody(order);
  return format === 'jsonl'
    ? `${JSON.stringify(body)}\n`
    : `${COLUMNS.map((name) => String(body[name] ?? '')).join(',')}\n`;
}
