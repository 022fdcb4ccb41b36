import { Command, Option } from 'commander';
import { assertNever } from '../../core/errors.js';
import { SALE_STATES, type NewSale, type Sale, type SaleState } from '../../core/sale.js';
import { readTime } from '../../core/time.js';
import type { SaleFilter } from '../../core/ports/sale-repository.js';
import { readNewSale, type PriceTerms } from '../../sales/new-sale.js';
import type { SaleAdmin, SaleAdminAnswer, SaleCreated } from '../../sales/sale-admin.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { checkSpan, limitOption, operatorName, parseSaleId, parseTime } from '../../process/options.js';
import { isoTime, print, printError, tableLine } from '../../process/print.js';
import { priceTerms, saleImportCommand, salePlanCommand, withSales } from './calendar-commands.js';
import { saleVoidCommand } from './void-commands.js';
import { saleCancelCommand, saleEditCommand } from './edit-commands.js';
import { COUPON_HELP, invalidSale, numberOf, printSale, saleLine, timeOf } from './sale-fields.js';
import { saleRepairCommand, saleReshardCommand } from './bucket-commands.js';
import { withoutUndefined } from '../../core/without-undefined.js';

/** The flags as the operator typed them. `readNewSale` checks them. */
interface CreateFlags {
  readonly sku?: string;
  readonly title?: string;
  readonly priceCents?: string;
  readonly currency?: string;
  readonly stock?: string;
  readonly limitPerBuyer: string;
  readonly buckets: string;
  readonly opensAt: string;
  readonly closesAt?: string;
  readonly warmBefore?: string;
  readonly paymentWindow?: string;
  readonly coupon?: string;
  readonly json?: boolean;
}

const DAY_MS = 86_400_000;

const EXAMPLES = `
A sale goes draft → warm → open ⇄ paused → closed; closed is final. With --warm-before the keeper moves it.

Examples:
  seckill sale create --sku pen --title 'A pen' --price-cents 250 --stock 100
  seckill sale warm 7                     loads its stock into Redis
  seckill sale open 7                     lets buyers buy within its window
  seckill sale plan                       the coming week, and what is missing for each sale
  seckill sale list --json

Exit codes: 0 done, 1 not done (the sale is in another state, or a server is down), 2 wrong usage.`;

const CREATE_EXAMPLES = `
Examples:
  seckill sale create --sku pen --title 'A pen' --price-cents 250 --stock 100 --opens-at +10m --closes-at +2h
  seckill sale create --sku tv --title 'A TV' --price-cents 49900 --stock 5000 --buckets 4 --limit-per-buyer 2 --json

  seckill sale create --sku mug --title 'A mug' --price-cents 900 --stock 100 --opens-at +1h --warm-before 10m

The sale is a draft. Continue with \`seckill sale warm <saleId>\`, then \`open\`. With --warm-before the keeper warms, opens and
closes the sale, which must not overlap another sale of the same sku. --json prints the saleId.
Exit codes: 0 created, 1 not created (it overlaps another sale, or a server is down), 2 wrong usage (all wrong values are
listed).`;

export function saleCommand(): Command {
  const sale = new Command('sale')
    .description(
      'create, import, plan, edit, warm, open, pause, resume, close, cancel, show, list, repair and reshard sales',
    )
    .addHelpText('after', EXAMPLES);
  sale
    .command('create')
    .description('create a sale as a draft')
    .option('--sku <sku>', 'article number: 1 to 64 of A-Z a-z 0-9 . _ - (required)')
    .option('--title <title>', 'title for buyers: 1 to 200 characters (required)')
    .option(
      '--price-cents <cents>',
      'price of one unit in the smallest unit of its currency: 1999 is 19.99 EUR, 1,999 JPY; 0 is free (required)',
    )
    .option('--currency <letters>', 'currency of the price, such as EUR (default: SALE_CURRENCY)')
    .option('--stock <units>', 'units offered, 1 to 10000000 (required)')
    .option('--limit-per-buyer <units>', 'maximum units per buyer, 1 to 1000', '1')
    .option('--buckets <n>', 'number of parts of the stock in Redis, which a cluster can spread over its servers', '1')
    .option('--opens-at <time>', 'ISO 8601, now, or +10m', 'now')
    .option('--closes-at <time>', 'ISO 8601 or +1d (default: a day after it opens)')
    .option(
      '--warm-before <duration>',
      'the keeper runs the sale, and warms it this long before: 1s to 7d, such as 10m',
    )
    .option(
      '--payment-window <duration>',
      'time that a buyer has to pay: 1s to 1d, such as 10m (default: ORDER_PAYMENT_WINDOW_MS)',
    )
    .option('--coupon <terms>', `coupon for each paid order: ${COUPON_HELP}`)
    .option('--json', 'print one JSON line')
    .addHelpText('after', CREATE_EXAMPLES)
    .action((flags: CreateFlags) => {
      const newSale = newSaleOf(flags, Date.now(), priceTerms());
      return run(flags.json, async (admin) => createdSale(await admin.create(newSale, operatorName())));
    });

  const moves = {
    warm: 'load the stock of a draft into Redis; nobody can buy yet',
    open: 'let buyers buy within its window',
    pause: 'refuse buyers with 503 `paused` until the sale is resumed',
    resume: 'let buyers buy again in a paused sale',
    close: 'end the sale for good; its orders stay',
  } as const;
  for (const [verb, description] of Object.entries(moves) as [keyof typeof moves, string][]) {
    sale
      .command(verb)
      .description(description)
      .argument('<saleId>', 'sale id', parseSaleId)
      .option('--json', 'print one JSON line')
      .action((saleId: string, options: { json?: boolean }) =>
        run(options.json, async (admin) => {
          const move = verb === 'resume' ? 'open' : verb; // a paused sale resumes in the same way as a warm sale opens
          return saleOf(verb, saleId, await admin[move](saleId, operatorName()));
        }),
      );
  }
  sale
    .command('show')
    .description('print one sale as stored in MySQL')
    .argument('<saleId>', 'sale id', parseSaleId)
    .option('--json', 'print one JSON line')
    .action((saleId: string, options: { json?: boolean }) =>
      run(options.json, async (admin) => {
        const found = await admin.show(saleId);
        if (found === null) throw new CliError(`there is no sale ${saleId}.`);
        return found;
      }),
    );
  sale
    .command('list')
    .description('print one line per sale, newest first')
    .addOption(new Option('--state <state>', 'only sales in this state').choices(SALE_STATES))
    .option('--sku <sku>', 'only sales of this sku')
    .option('--opens-from <time>', 'only sales that open at this time or later: ISO 8601, now, -7d or +1d', parseTime)
    .option('--opens-to <time>', 'only sales that open before this time', parseTime)
    .option('--before <saleId>', 'only sales before this one, for the next page', parseSaleId)
    .addOption(limitOption('sales'))
    .option('--json', 'one JSON line per sale')
    .action(list);
  sale.addCommand(saleVoidCommand());
  sale.addCommand(saleEditCommand()).addCommand(saleCancelCommand('cancel')).addCommand(saleCancelCommand('delete'));
  for (const make of [saleImportCommand, salePlanCommand, saleRepairCommand, saleReshardCommand])
    sale.addCommand(make());
  return sale;
}

async function run(json: boolean | undefined, work: (admin: SaleAdmin) => Promise<Sale>): Promise<void> {
  const sale = await withSales(work);
  if (json) print(saleLine(sale));
  else printSale(sale);
}

/** @throws UsageError with one line for each error */
export function newSaleOf(flags: CreateFlags, nowMs: number, terms?: PriceTerms): NewSale {
  const opensAt = timeOf(flags.opensAt);
  const read = readNewSale(
    {
      sku: flags.sku,
      title: flags.title,
      priceCents: numberOf(flags.priceCents),
      ...withoutUndefined({ currency: flags.currency }),
      stock: numberOf(flags.stock),
      limitPerBuyer: numberOf(flags.limitPerBuyer),
      buckets: numberOf(flags.buckets),
      opensAt,
      // If opensAt is not a time, neither is the day after it. One line about opensAt is enough.
      closesAt: timeOf(flags.closesAt ?? isoTime((readTime(opensAt, nowMs) ?? nowMs) + DAY_MS)),
      ...withoutUndefined({ warmBefore: flags.warmBefore, paymentWindow: flags.paymentWindow, coupon: flags.coupon }),
    },
    nowMs,
    terms,
  );
  if ('sale' in read) return read.sale;
  throw new UsageError(invalidSale(read.errors));
}

function createdSale(made: SaleCreated): Sale {
  if (made.outcome === 'created') return made.sale;
  throw new CliError(invalidSale(made.errors));
}

function saleOf(verb: string, saleId: string, answer: SaleAdminAnswer): Sale {
  switch (answer.outcome) {
    case 'in_repair':
      printError(inRepairSentence(answer.sale));
      return answer.sale;
    case 'done':
      if (answer.unchanged) printError(`Sale ${saleId} was ${answer.sale.state} already.`);
      return answer.sale;
    case 'not_found':
      throw new CliError(`there is no sale ${saleId}.`);
    case 'wrong_state':
      throw new CliError(wrongStateSentence(verb, answer.sale));
    default:
      return assertNever(answer);
  }
}

/** Says what happens to a sale that was moved while Redis has lost it or is rebuilding it. */
export const inRepairSentence = ({ saleId, state }: Pick<Sale, 'saleId' | 'state'>): string =>
  `Sale ${saleId} is ${state}. Its stock in Redis is being rebuilt, or is lost and will be rebuilt by the keeper. Until then, nobody can buy.`;

/** Says why the sale cannot make this move, and names the command that helps, if there is one. */
export function wrongStateSentence(verb: string, { saleId, state }: Pick<Sale, 'saleId' | 'state'>): string {
  switch (state) {
    case 'draft':
      return `sale ${saleId} is a draft: warm it first with \`seckill sale warm ${saleId}\`.`;
    case 'warm':
      return `sale ${saleId} is warm, not open yet: open it first with \`seckill sale open ${saleId}\`.`;
    case 'closed':
      return `sale ${saleId} is closed, and that is final: create a new one with \`seckill sale create\`.`;
    case 'open':
    case 'paused':
      return `sale ${saleId} is ${state}: \`seckill sale ${verb}\` is not possible now.`;
  }
}

const listLine = tableLine(8, 7, 20, 20, 24, 24);

interface ListFlags {
  readonly state?: SaleState;
  readonly sku?: string;
  readonly opensFrom?: number;
  readonly opensTo?: number;
  readonly before?: string;
  readonly limit: number;
  readonly json?: boolean;
}

async function list({ state, sku, opensFrom, opensTo, before, limit, json }: ListFlags): Promise<void> {
  checkSpan({ opensFrom, opensTo });
  const filter: SaleFilter = {
    max: limit,
    ...(state === undefined ? {} : { states: [state] }),
    ...withoutUndefined({ sku, opensFromMs: opensFrom, opensToMs: opensTo, beforeId: before }),
  };
  const sales = await withSales((admin) => admin.list(filter));
  if (!json) print(listLine('sale', 'state', 'sku', 'sold', 'opens', 'closes', 'title'));
  for (const sale of sales) {
    const { saleId, state: stands, sku: item, title, sold, stock, opensAtMs, closesAtMs } = sale;
    const cells = [saleId, stands, item, `${sold} of ${stock}`, isoTime(opensAtMs), isoTime(closesAtMs), title];
    print(json ? saleLine(sale) : listLine(...cells));
  }
  if (!json && sales.length === limit) printError(`For more, add --before ${sales.at(-1)?.saleId}.`);
}
