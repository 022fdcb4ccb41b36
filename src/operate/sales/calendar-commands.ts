import { extname } from 'node:path';
import { Command } from 'commander';
import { openSales, planOfSales, priceTermsOf } from './services.js';
import { loadConfig } from '../../core/config/load.js';
import { readDuration } from '../../core/duration.js';
import { plannedBody } from './routes.js';
import { withConfigured } from '../../process/connections.js';
import { IMPORT_FORMATS, readImport, type ImportError, type ImportFormat } from './import-sales.js';
import type { PriceTerms } from '../../sales/new-sale.js';
import type { SaleAdmin } from '../../sales/sale-admin.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { operatorName } from '../../process/options.js';
import { isoTime, print, inLine, tableLine } from '../../process/print.js';
import { readText } from '../../process/read-text.js';

export const withSales = <T>(work: (admin: SaleAdmin) => Promise<T>): Promise<T> => {
  return withConfigured('sale', ['mysql', 'redis'], async (connections) => work(await openSales(connections)));
};

/** The price rules of the api, provided that the command runs with the same settings. */
export const priceTerms = (): PriceTerms => priceTermsOf(loadConfig(['sale', 'payment'], process.env));

const IMPORT_EXAMPLES = `
A CSV file (UTF-8; commas, semicolons or tabs) names its columns in the first line; a JSON file is a list of objects with the
same names:
  sku,title,priceCents,currency,stock,limitPerBuyer,buckets,opensAt,closesAt,warmBefore,paymentWindow,coupon
  pen,A pen,250,EUR,100,1,,2030-01-31T20:00:00Z,2030-01-31T22:00:00Z,10m,5m,10% 30d

currency, buckets, warmBefore, paymentWindow and coupon may be left out. All other columns are required.

The command creates all sales of the file or none. It reports every wrong line, and every sale that overlaps another sale of
the same sku.

Examples:
  seckill sale import sales.csv --dry-run
  seckill sale import sales.json --json

It prints the id of each new sale beside its line.
Exit codes: 0 created (with --dry-run: the file is valid), 1 not created (a sale overlaps another sale, or a server is down),
2 the file cannot be read or has errors.`;

export function saleImportCommand(): Command {
  return new Command('import')
    .description('create all sales of a CSV or JSON file, or none')
    .argument('<file>', 'sales.csv or sales.json')
    .option('--dry-run', 'only check the file; create nothing')
    .option('--json', 'one JSON line per error, or per new sale')
    .addHelpText('after', IMPORT_EXAMPLES)
    .action(importSales);
}

async function importSales(file: string, { dryRun, json }: { dryRun?: boolean; json?: boolean }): Promise<void> {
  const { sales, errors } = readImport(readText(file), formatOf(file), Date.now(), priceTerms());
  if (errors.length > 0) throw new UsageError(refused(file, errors, json));
  const newSales = sales.map(({ sale }) => sale);
  const lineOf = (index: number): number => sales[index]?.line ?? 1;
  const nameOf = (index: number): string => `line ${lineOf(index)}`;
  const { overlaps, created } = await withSales(async (admin) => {
    if (dryRun) return { overlaps: await admin.overlaps(newSales, nameOf), created: [] };
    const made = await admin.import(newSales, operatorName(), nameOf);
    return made.outcome === 'created'
      ? { overlaps: [], created: made.sales }
      : { overlaps: made.overlaps, created: [] };
  });
  if (overlaps.length > 0) {
    const wrong = overlaps.map(({ index, error }) => ({ ...error, line: lineOf(index) }));
    throw new CliError(refused(file, wrong, json));
  }
  for (const [index, { saleId, sku }] of created.entries()) {
    const line = lineOf(index);
    print(json ? JSON.stringify({ line, saleId, sku }) : inLine(`${file}:${line}: sale ${saleId} (${sku})`));
  }
  if (json) return;
  print(dryRun ? `${newSales.length} sales are valid; nothing was created.` : `${created.length} sales were created.`);
}

function formatOf(file: string): ImportFormat {
  const format = IMPORT_FORMATS.find((known) => extname(file).toLowerCase() === `.${known}`);
  if (format === undefined) throw new UsageError(`${inLine(file)} must end in .csv or .json.`);
  return format;
}

function refused(file: string, errors: readonly ImportError[], json: boolean | undefined): string {
  if (json) for (const error of errors) print(JSON.stringify({ file, ...error }));
  const lines = errors.map(({ line, message }) => inLine(`${file}:${line}: ${message}`));
  const found = errors.length === 1 ? 'one error' : `${errors.length} errors`;
  return `${found}, and nothing was created${json ? '.' : `:\n${lines.join('\n')}`}`;
}

const PLAN_EXAMPLES = `
Statuses: ready; not_ready (the last column says why); waits (the keeper warms the sale later); by_hand (warm and open it
yourself); missed (its window passed while it was a draft).

Examples:
  seckill sale plan
  seckill sale plan --within 1d --json

Exit codes: 0 done, 1 a sale is not ready, or a server is down, 2 wrong usage.`;

export function salePlanCommand(): Command {
  return new Command('plan')
    .description('show the sales of the coming week, and what is missing for each')
    .option('--within <duration>', 'only sales that open within this time, such as 1d', '7d')
    .option('--json', 'one JSON line per sale')
    .addHelpText('after', PLAN_EXAMPLES)
    .action(plan);
}

const planLine = tableLine(8, 9, 20, 24, 24, 24);

async function plan({ within, json }: { within: string; json?: boolean }): Promise<void> {
  const withinMs = readDuration(within);
  if (withinMs === null) throw new UsageError('--within must be a duration such as 12h or 7d.');
  const planned = await withConfigured('sale', ['mysql', 'redis', 'rocketmq', 'brokerAccess'], (connections) =>
    planOfSales(connections, withinMs),
  );
  if (!json) print(planLine('sale', 'status', 'sku', 'warms', 'opens', 'closes', 'missing'));
  for (const entry of planned) {
    if (json) {
      print(JSON.stringify(plannedBody(entry)));
      continue;
    }
    const { sale, status, missing, warmsAtMs } = entry;
    const warms = warmsAtMs === null ? '-' : isoTime(warmsAtMs);
    const times = [warms, isoTime(sale.opensAtMs), isoTime(sale.closesAtMs)];
    print(planLine(sale.saleId, status, sale.sku, ...times, missing.join('; ')));
  }
  if (planned.some(({ status }) => status === 'not_ready')) process.exitCode = 1;
}
