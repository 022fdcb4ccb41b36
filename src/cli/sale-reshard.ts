import { Command } from 'commander';
import { withOperator } from '../programs/operator.js';
import { loadConfig } from '../core/config/load.js';
import { RESHARD_SENTENCES, type ReshardedSale } from '../core/resharded.js';
import { BUCKETS_MAX } from '../core/unit-transfer.js';
import { createLog } from '../programs/telemetry.js';
import { CliError } from './cli-error.js';
import { operatorName } from './dlq-options.js';
import { parseWhole } from './options.js';

interface ReshardFlags {
  readonly buckets: number;
  readonly json?: boolean;
}

const DETAILS = `
Nobody can buy while the books are dealt out anew, which takes a part of a second and some more for each ten
thousand orders; buyers hear 503 and come again. What was sold, and what waits for a worker, goes along.

Interrupted (Ctrl-C), it leaves the sale shut: the keeper opens it once the lease has ended (REPAIR_LEASE_MS, 15 s by
default), with the new buckets or with the old ones.

Exit codes: 0 split, 1 not split, 2 used wrongly.`;

export function saleReshardCommand(): Command {
  return new Command('reshard')
    .description('split a sale into more buckets while it sells')
    .addHelpText('after', DETAILS)
    .argument('<saleId>')
    .requiredOption('--buckets <n>', 'a multiple of those that it has', parseWhole(2, BUCKETS_MAX))
    .option('--json', 'print one JSON line')
    .action(reshard);
}

async function reshard(saleId: string, { buckets, json = false }: ReshardFlags): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'repair', 'gate', 'log'], process.env);
  const end = await withOperator(config, createLog('sale', 'warn'), (operator) =>
    operator.reshard(saleId, { buckets, actor: operatorName() }),
  );
  if (end.outcome !== 'resharded') throw new CliError(RESHARD_SENTENCES[end.outcome]);
  console.log(json ? JSON.stringify({ saleId, ...end }) : sentenceOf(saleId, end));
}

function sentenceOf(saleId: string, { buckets, unitsLeft, shutMs }: ReshardedSale): string {
  return `Sale ${saleId} has ${buckets} buckets now: ${unitsLeft} units left, shut for ${(shutMs / 1000).toFixed(2)} s.`;
}
