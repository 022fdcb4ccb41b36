import { Command } from 'commander';
import { amountText } from '../../core/amount-text.js';
import type { VoidWish } from '../../core/ports/order-refunds.js';
import { createOrderRefunds } from '../../mysql/order-refunds.js';
import { findSale } from '../../mysql/sale-repository.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { withConfigured } from '../../process/connections.js';
import { operatorName, parseSaleId } from '../../process/options.js';
import { print, printError } from '../../process/print.js';
import { systemClock as clock } from '../../process/system-clock.js';

const EXAMPLES = `
After a mistake in the price, for example: pause or close the sale, count, then void it.

Examples:
  seckill sale pause 7
  seckill sale void 7 --unpaid --refund-all --reason 'wrong price' --dry-run
  seckill sale void 7 --unpaid --refund-all --reason 'wrong price'

Works in steps of 500 orders. If it is interrupted, run it again: it skips orders that are done. Cancelled units are for sale
again; refunded units stay sold. The keeper makes the refunds one after another; \`seckill orders export --sale 7 --state
refunding\` shows the rest. Purchases that a worker has not written yet become orders later, so run it again after a minute.
Exit codes: 0 done, 1 not done (the sale is open, or MySQL is down), 2 wrong usage.`;

interface VoidFlags {
  readonly unpaid?: boolean;
  readonly refundAll?: boolean;
  readonly dryRun?: boolean;
  readonly reason: string;
  readonly json?: boolean;
}

export const saleVoidCommand = (): Command =>
  new Command('void')
    .description('cancel the unpaid orders of a sale, and refund its paid orders')
    .argument('<saleId>', 'sale id', parseSaleId)
    .option('--unpaid', 'cancel unpaid orders')
    .option('--refund-all', 'refund paid orders in whole')
    .requiredOption('--reason <text>', 'for the audit log')
    .option('--dry-run', 'only count')
    .option('--json', 'print one JSON line')
    .addHelpText('after', EXAMPLES)
    .action(voidSale);

async function voidSale(saleId: string, flags: VoidFlags): Promise<void> {
  const { unpaid = false, refundAll = false, dryRun = false, reason, json } = flags;
  if (!unpaid && !refundAll) throw new UsageError('give --unpaid, --refund-all or both.');
  const wish: VoidWish = { unpaid, refundAll, dryRun, reason };
  await withConfigured('sale', ['mysql', 'redis'], async (connections) => {
    const mysql = connections.mysql();
    const currency = (await findSale(mysql, saleId))?.currency ?? '';
    const orders = createOrderRefunds(mysql, { clock });
    let [cancelled, refunding, refundCents] = [0, 0, 0];
    const said = (): string =>
      `${cancelled} unpaid orders ${dryRun ? 'to cancel' : 'cancelled'}, ${refunding} paid orders ${dryRun ? 'to refund' : 'refunding'} (${amountText(refundCents, currency)})`;
    for (let after: string | null = null; ;) {
      const step = await orders.voidNext(saleId, after, wish, operatorName());
      if (step.outcome === 'not_found') throw new CliError(`there is no sale ${saleId}.`);
      if (step.outcome !== 'done')
        throw new CliError(`sale ${saleId} is open. Pause or close it first, or new orders follow.`);
      cancelled += step.cancelled;
      refunding += step.refunding;
      refundCents += step.refundCents;
      if (step.next === null) break;
      if (!json && step.cancelled + step.refunding > 0) printError(`${said()} so far`);
      after = step.next;
    }
    print(
      json
        ? JSON.stringify({ saleId, dryRun, cancelled, refunding, refundCents, currency })
        : `sale ${saleId}: ${said()}.`,
    );
  });
}
