import { Command } from 'commander';
import { openEditor } from './services.js';
import { assertNever } from '../../core/errors.js';
import type { Sale } from '../../core/sale.js';
import { notEnded } from './edit-routes.js';
import { withConfigured } from '../../process/connections.js';
import { readSaleChange, type SaleCancelled, type SaleEdited, type SaleEditor } from '../../sales/edit-sale.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { operatorName, parseSaleId } from '../../process/options.js';
import { COUPON_HELP, invalidSale, numberOf, printSale, saleLine, timeOf } from './sale-fields.js';
import { print } from '../../process/print.js';
import { withoutUndefined } from '../../core/without-undefined.js';

interface EditFlags {
  readonly title?: string;
  readonly priceCents?: string;
  readonly closesAt?: string;
  readonly stock?: string;
  readonly paymentWindow?: string;
  readonly coupon?: string;
  readonly json?: boolean;
}

const EXAMPLES = `
The stock is the total number of units offered. Added units are for sale at once. A lower stock removes free units, all or
none; sold units and units held for buyers stay. Edits are safe while the sale sells, and safe to repeat.

Examples:
  seckill sale edit 7 --stock 150
  seckill sale edit 7 --title 'A better pen' --closes-at +2h
  seckill sale edit 7 --price-cents 200              only while it is a draft

Exit codes: 0 done, 1 not done (the sale does not allow it now, or a server is down), 2 wrong usage.`;

export function saleEditCommand(): Command {
  return new Command('edit')
    .description('change title, closing time, stock, payment window or coupons of a sale, or the price of a draft')
    .argument('<saleId>', 'sale id', parseSaleId)
    .option('--title <title>', 'title for buyers: 1 to 200 characters')
    .option('--price-cents <cents>', 'price of one unit in the smallest unit of its currency; only for a draft')
    .option('--closes-at <time>', 'ISO 8601 or +2h')
    .option('--stock <units>', 'total units offered, 1 to 10000000')
    .option('--payment-window <duration>', 'time that a buyer has to pay for an order from now on, such as 10m')
    .option('--coupon <terms>', `coupon for each order that is paid from now on: ${COUPON_HELP}; or none`)
    .option('--json', 'print one JSON line')
    .addHelpText('after', EXAMPLES)
    .action(async (saleId: string, { json, ...flags }: EditFlags) => {
      const read = readSaleChange({
        ...withoutUndefined({ title: flags.title, paymentWindow: flags.paymentWindow, coupon: flags.coupon }),
        ...(flags.priceCents === undefined ? {} : { priceCents: numberOf(flags.priceCents) }),
        ...(flags.stock === undefined ? {} : { stock: numberOf(flags.stock) }),
        ...(flags.closesAt === undefined ? {} : { closesAt: timeOf(flags.closesAt) }),
      });
      if (Object.keys(flags).length === 0) throw new UsageError('name at least one option, such as --title.');
      if ('errors' in read) throw new UsageError(invalidSale(read.errors));
      const sale = await withEditor(async (editor) =>
        editedSale(saleId, await editor.edit(saleId, read.change, operatorName())),
      );
      if (json) print(saleLine(sale));
      else printSale(sale);
    });
}

function editedSale(saleId: string, edited: SaleEdited): Sale {
  switch (edited.outcome) {
    case 'done':
      return edited.sale;
    case 'wrong':
      throw new CliError(invalidSale(edited.errors));
    case 'not_found':
      throw new CliError(`there is no sale ${saleId}.`);
    case 'wrong_state':
      throw new CliError(`sale ${saleId} is ${edited.sale.state} and can no longer be changed.`);
    case 'not_enough':
      throw new CliError(
        `sale ${saleId} does not have enough free units; ${edited.sale.sold} are sold. Nothing was changed.`,
      );
    case 'repairing':
      throw new CliError(
        `sale ${saleId} is being rebuilt in Redis. The keeper will finish this change. You may also repeat it in a minute.`,
      );
    case 'busy':
      throw new CliError(
        `an earlier change of sale ${saleId} waits until the sale is rebuilt in Redis. This change was not made. Repeat it in a minute.`,
      );
    default:
      return assertNever(edited);
  }
}

export function saleCancelCommand(verb: 'cancel' | 'delete'): Command {
  const does = {
    cancel: 'end a sale that has not begun: deletes a draft, closes any other sale',
    delete: 'delete a draft',
  };
  return new Command(verb)
    .description(does[verb])
    .argument('<saleId>', 'sale id', parseSaleId)
    .option('--json', 'print one JSON line')
    .action(async (saleId: string, { json }: { json?: boolean }) => {
      const outcome = await withEditor(async (editor) => {
        const end = verb === 'cancel' ? editor.cancel : editor.remove;
        return endedAs(verb, saleId, await end.call(editor, saleId, operatorName()));
      });
      print(json ? JSON.stringify({ saleId, outcome }) : `sale ${saleId} is ${outcome}.`);
    });
}

function endedAs(verb: 'cancel' | 'delete', saleId: string, answer: SaleCancelled): 'deleted' | 'closed' {
  switch (answer.outcome) {
    case 'deleted':
    case 'closed':
      return answer.outcome;
    case 'not_found':
      throw new CliError(`there is no sale ${saleId}.`);
    case 'wrong_state':
      throw new CliError(notEnded(verb, answer.sale.state));
    default:
      return assertNever(answer);
  }
}

const withEditor = <T>(work: (editor: SaleEditor) => Promise<T>): Promise<T> => {
  return withConfigured('sale', ['mysql', 'redis', 'payment'], async (connections) =>
    work(await openEditor(connections)),
  );
};
