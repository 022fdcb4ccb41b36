import { Command } from 'commander';
import { repairSale, splitIntoBuckets } from './services.js';
import { assertNever } from '../../core/errors.js';
import { RESHARD_SENTENCES } from '../../core/sale-repair.js';
import { BUCKETS_MAX } from '../../core/bucket.js';
import { withConfigured } from '../../process/connections.js';
import type { OrderedRepair } from '../../recovery/repair/repair-jobs.js';
import type { RepairStep } from '../../recovery/repair/repair-sale.js';
import { CliError } from '../../process/cli-error.js';
import { operatorName, parseSaleId, parseWhole } from '../../process/options.js';
import { print, printError } from '../../process/print.js';

const REPAIR_DETAILS = `
If Redis may have lost data of a sale, the keeper does this by itself within seconds. This command starts at once and shows
the steps. Nobody can buy meanwhile. The numbers come from MySQL. Purchases that only Redis has keep their units while units
are left.

After Ctrl-C the sale stays locked until a keeper takes over after 15 s, or until you run this command again.

Examples:
  seckill sale repair 7
  seckill sale repair 7 --force --json     even if no repair is needed

Exit codes: 0 repaired or not needed, 1 not repaired, 2 wrong usage.`;

export function saleRepairCommand(): Command {
  return new Command('repair')
    .description('rebuild a sale in Redis from MySQL')
    .addHelpText('after', REPAIR_DETAILS)
    .argument('<saleId>', 'sale id', parseSaleId)
    .option('--force', 'rebuild the sale even if no repair is needed')
    .option('--json', 'print one JSON line per step and one at the end')
    .action(repair);
}

async function repair(
  saleId: string,
  { force = false, json = false }: { readonly force?: boolean; readonly json?: boolean },
): Promise<void> {
  const onStep = (step: RepairStep): void =>
    json ? print(JSON.stringify({ saleId, ...step })) : printError(stepSentence(step));
  const end = await withConfigured('sale', ['mysql', 'redis', 'repair', 'brokerAccess'], (connections) =>
    repairSale(connections, saleId, { actor: operatorName(), onStep, force }),
  );
  const done = endSentence(saleId, end);
  print(json ? JSON.stringify({ saleId, ...end }) : done);
}

function stepSentence(step: RepairStep): string {
  switch (step.step) {
    case 'locked':
      return 'Locked: nobody can buy. Waiting for the workers.';
    case 'quiet':
      return 'The workers have finished, or the wait for them is over.';
    case 'epoch':
      return `Epoch ${step.epoch} begins. Batches of older epochs must reacquire their units.`;
    case 'staged': {
      const { rows, held, ordersLost } = step;
      const staged = `Rebuilt: ${rows} purchases with an order in MySQL, ${held} still waiting for their order.`;
      if (ordersLost === 0) return staged;
      return `${staged} MySQL lost ${ordersLost} orders. They keep their units, and \`seckill reconcile\` lists them.`;
    }
    default:
      return assertNever(step);
  }
}

function endSentence(saleId: string, end: OrderedRepair): string {
  switch (end.outcome) {
    case 'repaired':
      return `Sale ${saleId} is repaired: ${end.unitsLeft} units left, ${(end.tookMs / 1000).toFixed(1)} s.`;
    case 'not_needed':
      return `Sale ${saleId} needs no repair; nothing was changed. Use --force to rebuild it anyway.`;
    case 'busy':
      throw new CliError(`another repair of sale ${saleId} is running; it ends within seconds.`);
    case 'superseded':
      throw new CliError(`another repair took over sale ${saleId}, or Redis was restarted. Check again in a minute.`);
    case 'not_found':
      throw new CliError(`there is no sale ${saleId}.`);
    case 'draft':
      throw new CliError(`sale ${saleId} is a draft: nothing of it is in Redis yet.`);
    case 'retired':
      throw new CliError(`sale ${saleId} is retired: only MySQL has it, so there is nothing to repair.`);
    default:
      return assertNever(end);
  }
}

const RESHARD_DETAILS = `
The stock of a sale is kept in one or more buckets, which a Redis cluster can put on different servers. The split takes less
than a second, or longer with tens of thousands of orders. Meanwhile buyers get 503 and may retry with the same key. Sold
units, and purchases that wait for a worker, are kept.

After Ctrl-C the sale stays locked until the keeper opens it after 15 s, with the new or the old buckets.

Example:
  seckill sale reshard 7 --buckets 4

Exit codes: 0 split, 1 not split, 2 wrong usage.`;

export function saleReshardCommand(): Command {
  return new Command('reshard')
    .description('split a sale into more buckets while it sells')
    .addHelpText('after', RESHARD_DETAILS)
    .argument('<saleId>', 'sale id', parseSaleId)
    .requiredOption(
      '--buckets <n>',
      `new number of buckets: a multiple of the current number, at most ${BUCKETS_MAX}`,
      parseWhole(2, BUCKETS_MAX),
    )
    .option('--json', 'print one JSON line')
    .action(reshard);
}

async function reshard(
  saleId: string,
  { buckets, json = false }: { readonly buckets: number; readonly json?: boolean },
): Promise<void> {
  const end = await withConfigured('sale', ['mysql', 'redis', 'repair', 'brokerAccess'], (connections) =>
    splitIntoBuckets(connections, saleId, { buckets, actor: operatorName() }),
  );
  if (end.outcome !== 'resharded') throw new CliError(RESHARD_SENTENCES[end.outcome]);
  const lockedFor = `${(end.lockedMs / 1000).toFixed(2)} s`;
  if (json) print(JSON.stringify({ saleId, ...end }));
  else print(`Sale ${saleId} has ${end.buckets} buckets now: ${end.unitsLeft} units left, locked for ${lockedFor}.`);
}
