import { Command } from 'commander';
import { withConfigured } from '../../process/connections.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { operatorName, parseId, parseWhole } from '../../process/options.js';
import { print } from '../../process/print.js';
import { createOrderSearch } from '../../mysql/order-search.js';
import { assertNever } from '../../core/errors.js';
import { amountText } from '../../core/amount-text.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { whyNoRefund } from '../../core/why-no-refund.js';
import { orderRefundBody } from './money-routes.js';
import { openOrders, type OrderServices } from './services.js';

const EXIT_CODES = 'Exit codes: 0 done, 1 not done (wrong state, or MySQL is down), 2 wrong usage.';

const CANCEL_EXAMPLES = `
Example:
  seckill orders cancel 431234567890123456 --reason 'the buyer called'

${EXIT_CODES}`;

const REFUND_EXAMPLES = `
Examples:
  seckill orders refund 431234567890123456 --reason 'out of stock'
  seckill orders refund 431234567890123456 --amount 500 --key ticket-81 --reason 'a scratch'

The keeper makes the refund at the payment provider and repeats it until the provider answers. Safe to repeat: without
--amount an order is refunded once, and a --key is one refund. --restock sells the units again once nothing of the amount
is left, while the sale is not closed.
${EXIT_CODES}`;

interface RefundFlags {
  readonly amount?: number;
  readonly restock?: boolean;
  readonly reason: string;
  readonly key?: string;
  readonly json?: boolean;
}

export function moneyCommands(): Command[] {
  return [
    new Command('cancel')
      .description('cancel an unpaid order for its buyer; its units are for sale again')
      .argument('<orderId>', 'order id', parseId)
      .requiredOption('--reason <text>', 'for the audit log')
      .option('--json', 'print one JSON line')
      .addHelpText('after', CANCEL_EXAMPLES)
      .action(cancelOrder),
    new Command('refund')
      .description('refund a paid order, in whole or in part')
      .argument('<orderId>', 'order id', parseId)
      .option(
        '--amount <cents>',
        'a part, in the smallest unit of the currency (default: all that is left)',
        parseWhole(1, Number.MAX_SAFE_INTEGER),
      )
      .option('--restock', 'sell the units again')
      .option('--no-restock', 'leave the units sold (default)')
      .requiredOption('--reason <text>', 'for the audit log')
      .option('--key <id>', 'names this refund: a repeat with it is the same refund. Required with --amount', parseId)
      .option('--json', 'print one JSON line')
      .addHelpText('after', REFUND_EXAMPLES)
      .action(refundOrder),
  ];
}

const run = (task: (services: OrderServices & { currencyOf(orderId: string): Promise<string> }) => Promise<void>) =>
  withConfigured('orders', ['mysql', 'redis'], (connections) => {
    const search = createOrderSearch(connections.mysql());
    const currencyOf = async (orderId: string): Promise<string> =>
      (await search.currenciesOf([orderId])).get(orderId) ?? '';
    return task({ ...openOrders(connections), currencyOf });
  });

async function cancelOrder(orderId: string, { reason, json }: RefundFlags): Promise<void> {
  await run(async ({ orderRefunds }) => {
    const answer = await orderRefunds.cancel(orderId, reason, operatorName());
    if (answer === 'not_found') throw new CliError(`there is no order ${orderId}.`);
    if (answer !== 'cancelled') throw new CliError(`order ${orderId} is ${answer.state} and cannot be cancelled.`);
    print(json ? JSON.stringify({ outcome: answer, orderId }) : `order ${orderId} is cancelled.`);
  });
}

async function refundOrder(
  orderId: string,
  { amount, restock = false, reason, key, json }: RefundFlags,
): Promise<void> {
  if (amount !== undefined && key === undefined) {
    throw new UsageError('give --key with --amount, so that a repeat is not a second refund.');
  }
  await run(async ({ orderRefunds, currencyOf }) => {
    const wish = { restock, reason, ...withoutUndefined({ amountCents: amount, key }) };
    const answer = await orderRefunds.order(orderId, wish, operatorName());
    const currency = await currencyOf(orderId);
    switch (answer.outcome) {
      case 'refunding':
      case 'refunded': {
        const { outcome, refund } = answer;
        if (json) return print(JSON.stringify({ outcome, refund: refund === null ? null : orderRefundBody(refund) }));
        const sum = refund === null ? 'everything' : amountText(refund.amountCents, currency);
        return print(
          outcome === 'refunded'
            ? `order ${orderId} is refunded: ${sum}.`
            : `order ${orderId} is refunding: the keeper refunds ${sum}. \`seckill trace ${orderId}\` shows the result.`,
        );
      }
      case 'not_found':
        throw new CliError(`there is no order ${orderId}.`);
      case 'key_conflict':
        throw new CliError(`key ${key} belongs to another refund of order ${orderId}. Nothing was changed.`);
      case 'in_progress':
      case 'refund_failed':
      case 'wrong_state':
      case 'too_much':
      case 'sale_closed':
        throw new CliError(`order ${orderId}: ${whyNoRefund(answer, currency)}`);
      default:
        assertNever(answer);
    }
  });
}
