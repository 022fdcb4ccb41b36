import { Command } from 'commander';
import { withOperator } from '../programs/operator.js';
import { loadConfig } from '../core/config/load.js';
import type { Sale } from '../core/sale.js';
import { BUCKETS_MAX } from '../core/unit-transfer.js';
import { createLog } from '../programs/telemetry.js';
import type { SaleAdminAnswer, SaleAdmin } from '../sales/sale-admin.js';
import { CliError } from './cli-error.js';
import { operatorName } from './dlq-options.js';
import { parseTime, parseWhole } from './options.js';
import { saleRepairCommand } from './sale-repair.js';
import { saleReshardCommand } from './sale-reshard.js';

interface CreateOptions {
  sku: string;
  title: string;
  priceCents: number;
  stock: number;
  limitPerBuyer: number;
  buckets: number;
  opensAt?: number;
  closesAt?: number;
  json?: boolean;
}

export function saleCommand(): Command {
  const sale = new Command('sale').description('create, warm, open, pause, close, show, repair and reshard sales');
  sale
    .command('create')
    .description('create a sale in state draft')
    .requiredOption('--sku <sku>', 'what is sold')
    .requiredOption('--title <title>', 'what buyers read')
    .requiredOption('--price-cents <cents>', 'price of one unit', parseWhole(0, 1_000_000_000))
    .requiredOption('--stock <units>', 'units offered', parseWhole(1, 10_000_000))
    .option('--limit-per-buyer <units>', 'units one buyer may have', parseWhole(1, 1000), 1)
    .option('--buckets <n>', 'parts of its stock in Redis, which a cluster spreads', parseWhole(1, BUCKETS_MAX), 1)
    .option('--opens-at <time>', 'ISO 8601, now, or +10m (default: now)', parseTime)
    .option('--closes-at <time>', 'ISO 8601 or +1d (default: a day after it opens)', parseTime)
    .option('--json', 'print one JSON line')
    .action((options: CreateOptions) => run(options.json, (admin) => create(admin, options)));

  const moves = {
    warm: 'load the stock into Redis',
    open: 'let buyers in (within its window); also resumes a paused sale',
    pause: 'answer paused until it is opened again',
    close: 'end it for good',
  } as const;
  for (const [verb, description] of Object.entries(moves) as [keyof typeof moves, string][]) {
    sale
      .command(verb)
      .description(description)
      .argument('<saleId>')
      .option('--json', 'print one JSON line')
      .action((saleId: string, options: { json?: boolean }) =>
        run(options.json, async (admin) => saleOf(verb, saleId, await admin[verb](saleId, operatorName()))),
      );
  }
  sale
    .command('show')
    .description('print a sale as MySQL knows it')
    .argument('<saleId>')
    .option('--json', 'print one JSON line')
    .action((saleId: string, options: { json?: boolean }) =>
      run(options.json, async (admin) => saleOf('show', saleId, found(await admin.show(saleId)))),
    );
  return sale.addCommand(saleRepairCommand()).addCommand(saleReshardCommand());
}

async function run(json: boolean | undefined, work: (admin: SaleAdmin) => Promise<Sale>): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'gate', 'log'], process.env);
  const sale = await withOperator(config, createLog('sale', 'warn'), async (operator) => work(await operator.sales()));
  if (json) console.log(JSON.stringify(sale));
  else printSale(sale);
}

const create = (admin: SaleAdmin, options: CreateOptions): Promise<Sale> => {
  const { sku, title, priceCents, stock, limitPerBuyer, buckets, opensAt = Date.now() } = options;
  const closesAtMs = options.closesAt ?? opensAt + 86_400_000;
  if (closesAtMs <= opensAt) throw new CliError('--closes-at must be after --opens-at.');
  const sale = { sku, title, priceCents, stock, limitPerBuyer, buckets, opensAtMs: opensAt, closesAtMs };
  return admin.create(sale, operatorName());
};

const found = (sale: Sale | null): SaleAdminAnswer => (sale ? { outcome: 'done', sale } : { outcome: 'not_found' });

function saleOf(verb: string, saleId: string, answer: SaleAdminAnswer): Sale {
  switch (answer.outcome) {
    case 'done':
      return answer.sale;
    case 'not_found':
      throw new CliError(`there is no sale ${saleId}.`);
    case 'wrong_state':
      throw new CliError(wrongStateSentence(verb, answer.sale));
    case 'not_warmed':
      throw new CliError(`the stock of sale ${saleId} is not in Redis: was Redis emptied?`);
    case 'repairing':
      throw new CliError(`the books of sale ${saleId} are being rebuilt; try again in a minute.`);
  }
}

/** Why a move is refused, and the command that helps where there is one. */
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

function printSale(sale: Sale): void {
  const rows = {
    sale: sale.saleId,
    state: sale.state,
    sku: sale.sku,
    title: sale.title,
    price: `${(sale.priceCents / 100).toFixed(2)}`,
    sold: `${sale.sold} of ${sale.stock}`,
    'per buyer': `${sale.limitPerBuyer}`,
    opens: new Date(sale.opensAtMs).toISOString(),
    closes: new Date(sale.closesAtMs).toISOString(),
  };
  for (const [name, value] of Object.entries(rows)) console.log(`${name.padEnd(10)} ${value}`);
}
