import { extname } from 'node:path';
import { Command } from 'commander';
import { openSales, planOfSales } from '../programs/operator.js';
import { loadConfig } from '../core/config/load.js';
import { readDuration } from '../core/duration.js';
import { plannedBody } from '../http/routes/sale-plan.js';
import { withConnections } from '../process/connections.js';
import { priceTermsOf } from '../programs/price-terms.js';
import { createLog } from '../process/telemetry.js';
import { IMPORT_FORMATS, readImport, type ImportError, type ImportFormat } from '../sales/import-sales.js';
import type { PriceTerms } from '../sales/new-sale.js';
import type { SaleAdmin } from '../sales/sale-admin.js';
import { UsageError } from '../process/cli-error.js';
import { operatorName } from '../process/options.js';
import { isoTime, print, inLine, tableLine } from '../process/print.js';
import { readText } from './read-text.js';

export const withSales = <T>(work: (admin: SaleAdmin) => Promise<T>): Promise<T> => {
  const config = loadConfig(['mysql', 'redis'], process.env);
  return withConnections(config, createLog('sale', 'error'), async (connections) => work(await openSales(connections)));
};

/** The price rules of the api, if the command runs with the same settings. */
export const priceTerms = (): PriceTerms => priceTermsOf(loadConfig(['sale', 'payment'], process.env));

const IMPORT_EXAMPLES = `
A CSV file (UTF-8; commas, semicolons or tabs) names its columns in the first line; a JSON file is a list of objects with the
same names:
  sku,title,priceCents,currency,stock,limitPerBuyer,buckets,opensAt,closesAt,warmBefore
  pen,A pen,250,EUR,100,1,,2030-01-31T20:00:00Z,2030-01-31T22:00:00Z,10m

Either all sales of the file are created, or none: every wrong line is named, and so is every sale that overlaps
another one of its sku.

Examples:
  seckill sale import sales.csv --dry-run
  seckill sale import sales.json --json

Exit codes: 0 created (with --dry-run: nothing is wrong), 1 a server is away, 2 something is wrong with the file.`;

export function saleImportCommand(): Command {
  return new Command('import')
    .description('create the sales of a CSV or JSON file, all of them or none')
    .argument('<file>', 'sales.csv or sales.json')
    .option('--dry-run', 'only say what is wrong; creates nothing')
    .option('--json', 'one JSON line per error, or per new sale')
    .addHelpText('after', IMPORT_EXAMPLES)
    .action(importSales);
}

async function importSales(file: string, { dryRun, json }: { dryRun?: boolean; json?: boolean }): Promise<void> {
  const { sales, errors } = readImport(readText(file), formatOf(file), Date.now(), priceTerms());
  if (errors.length > 0) throw refused(file, errors, json);
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
    throw refused(
      file,
      overlaps.map(({ index, error }) => ({ ...error, line: lineOf(index) })),
      json,
    );
  }
  if (json) for (const { saleId, sku } of created) print(JSON.stringify({ saleId, sku }));
  else
    print(
      dryRun ? `${newSales.length} sales are right; nothing was created.` : `${created.length} sales were created.`,
    );
}

function formatOf(file: string): ImportFormat {
  const format = IMPORT_FORMATS.find((known) => extname(file).toLowerCase() === `.${known}`);
  if (format === undefined) throw new UsageError(`${inLine(file)} must end in .csv or .json.`);
  return format;
}

function refused(file: string, errors: readonly ImportError[], json: boolean | undefined): UsageError {
  if (json) for (const error of errors) print(JSON.stringify({ file, ...error }));
  const lines = errors.map(({ line, message }) => inLine(`${file}:${line}: ${message}`));
  const things = errors.length === 1 ? 'one thing is' : `${errors.length} things are`;
  return new UsageError(`${things} wrong, and nothing was created:\n${json ? '' : lines.join('\n')}`.trimEnd());
}

const PLAN_EXAMPLES = `
ready: nothing is missing; not_ready: the last column names what is; waits: the keeper warms it later;
by_hand: warm and open it yourself; missed: its window passed while it was a draft.

Examples:
  seckill sale plan
  seckill sale plan --within 1d --json

Exit codes: 0 done, 1 a sale is not ready, or a server is away, 2 used wrongly.`;

export function salePlanCommand(): Command {
  return new Command('plan')
    .description('the sales of the coming week, and what each still lacks')
    .option('--within <duration>', 'sales that open within this time, such as 1d', '7d')
    .option('--json', 'one JSON line per sale')
    .addHelpText('after', PLAN_EXAMPLES)
    .action(plan);
}

const planLine = tableLine(8, 9, 20, 24, 24, 24);

async function plan({ within, json }: { within: string; json?: boolean }): Promise<void> {
  const withinMs = readDuration(within);
  if (withinMs === null) throw new UsageError('--within must be a duration such as 12h or 7d.');
  const config = loadConfig(['mysql', 'redis', 'rocketmq', 'brokerAccess'], process.env);
  const planned = await withConnections(config, createLog('sale', 'error'), (connections) =>
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
