import { Command } from 'commander';
import { repairSale, splitIntoBuckets } from '../programs/operator.js';
import { loadConfig } from '../core/config/load.js';
import { assertNever } from '../core/errors.js';
import { RESHARD_SENTENCES } from '../core/sale-repair.js';
import { BUCKETS_MAX } from '../core/bucket.js';
import { withConnections } from '../process/connections.js';
import { createLog } from '../process/telemetry.js';
import type { OrderedRepair } from '../recovery/repair/repair-jobs.js';
import type { RepairStep } from '../recovery/repair/repair-sale.js';
import { CliError } from '../process/cli-error.js';
import { operatorName, parseSaleId, parseWhole } from '../process/options.js';
import { print, printError } from '../process/print.js';

const REPAIR_DETAILS = `
The keeper does this by itself, within seconds, for every sale that Redis may have lost data of. By hand it is done at
once, and shows its steps. Nobody can buy meanwhile. The numbers come from MySQL; purchases that only Redis has keep
their units where units are left.

Interrupted (Ctrl-C), it leaves the sale locked: a keeper takes over after 15 s; without
a keeper the sale stays locked until this is run again.

Examples:
  seckill sale repair 7
  seckill sale repair 7 --force --json     also without need

Exit codes: 0 repaired, or there was no need, 1 not repaired, 2 used wrongly.`;

export function saleRepairCommand(): Command {
  return new Command('repair')
    .description('rebuild a sale in Redis from MySQL')
    .addHelpText('after', REPAIR_DETAILS)
    .argument('<saleId>', 'number of the sale', parseSaleId)
    .option('--force', 'rebuild it even where there is no need')
    .option('--json', 'print one JSON line per step, and one for the end')
    .action(repair);
}

async function repair(
  saleId: string,
  { force = false, json = false }: { readonly force?: boolean; readonly json?: boolean },
): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'repair', 'brokerAccess'], process.env);
  const onStep = (step: RepairStep): void =>
    json ? print(JSON.stringify({ saleId, ...step })) : printError(stepSentence(step));
  const end = await withConnections(config, createLog('sale', 'error'), (connections) =>
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
      return 'The workers are done, or have had their time.';
    case 'epoch':
      return `Epoch ${step.epoch} begins: batches of older epochs have to reacquire their units.`;
    case 'staged': {
      const { rows, held, ordersLost } = step;
      const staged = `Rebuilt: ${rows} purchases with a row in MySQL, ${held} that wait for theirs.`;
      if (ordersLost === 0) return staged;
      return `${staged} MySQL lost ${ordersLost} orders: they keep their units, and \`seckill reconcile\` names them.`;
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
      return `Sale ${saleId} needs no repair, nothing was changed. With --force it is rebuilt all the same.`;
    case 'busy':
      throw new CliError(`another repair works on sale ${saleId}; it ends within seconds.`);
    case 'superseded':
      throw new CliError(`another repair took sale ${saleId} over, or Redis was restarted; check again in a minute.`);
    case 'not_found':
      throw new CliError(`there is no sale ${saleId}.`);
    case 'draft':
      throw new CliError(`sale ${saleId} is a draft: nothing of it is in Redis yet.`);
    case 'retired':
      throw new CliError(`sale ${saleId} is retired: it is in MySQL alone, and nothing asks Redis for it.`);
    default:
      return assertNever(end);
  }
}

const RESHARD_DETAILS = `
The stock of a sale is kept in one or more buckets; a Redis cluster can put each on another server. Nobody can buy while
it is split, which takes a part of a second and some more for each ten thousand orders; buyers get 503 and may ask again
with the same key. What was sold, and what waits for a worker, goes along.

Interrupted (Ctrl-C), it leaves the sale locked: the keeper opens it after 15 s, with
the new buckets or with the old ones.

Example:
  seckill sale reshard 7 --buckets 4

Exit codes: 0 split, 1 not split, 2 used wrongly.`;

export function saleReshardCommand(): Command {
  return new Command('reshard')
    .description('split a sale into more buckets while it sells')
    .addHelpText('after', RESHARD_DETAILS)
    .argument('<saleId>', 'number of the sale', parseSaleId)
    .requiredOption(
      '--buckets <n>',
      `a multiple of those that it has, at most ${BUCKETS_MAX}`,
      parseWhole(2, BUCKETS_MAX),
    )
    .option('--json', 'print one JSON line')
    .action(reshard);
}

async function reshard(
  saleId: string,
  { buckets, json = false }: { readonly buckets: number; readonly json?: boolean },
): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'repair', 'brokerAccess'], process.env);
  const end = await withConnections(config, createLog('sale', 'error'), (connections) =>
    splitIntoBuckets(connections, saleId, { buckets, actor: operatorName() }),
  );
  if (end.outcome !== 'resharded') throw new CliError(RESHARD_SENTENCES[end.outcome]);
  const lockedFor = `${(end.lockedMs / 1000).toFixed(2)} s`;
  if (json) print(JSON.stringify({ saleId, ...end }));
  else print(`Sale ${saleId} has ${end.buckets} buckets now: ${end.unitsLeft} units left, locked for ${lockedFor}.`);
}
