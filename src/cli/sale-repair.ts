import { Command } from 'commander';
import { withOperator } from '../programs/operator.js';
import { loadConfig } from '../core/config/load.js';
import { assertNever } from '../core/errors.js';
import { createLog } from '../programs/telemetry.js';
import type { OrderedRepair } from '../recovery/repair/repair-jobs.js';
import type { RepairStep } from '../recovery/repair/repair-sale.js';
import { CliError } from './cli-error.js';
import { operatorName } from './dlq-options.js';

interface RepairFlags {
  readonly force?: boolean;
  readonly json?: boolean;
}

const DETAILS = `
The keeper repairs by itself, within seconds, whatever Redis may have lost data of. This does the same at once, and shows
how it goes. Nobody can buy meanwhile. The numbers come from MySQL; what Redis has beyond them, held for a worker
or an order that MySQL lost, keeps its units where they are free.

Interrupted (Ctrl-C), it leaves the sale shut: a keeper takes over once its lease has ended (REPAIR_LEASE_MS, 15 s by
default); without a keeper the sale stays shut until this is run again.

Exit codes: 0 repaired, or there was no need, 1 not repaired, 2 used wrongly.`;

export function saleRepairCommand(): Command {
  return new Command('repair')
    .description('rebuild a sale in Redis from MySQL')
    .addHelpText('after', DETAILS)
    .argument('<saleId>')
    .option('--force', 'also where there is no need')
    .option('--json', 'print one JSON line per step, and one for the end')
    .action(repair);
}

async function repair(saleId: string, { force = false, json = false }: RepairFlags): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'repair', 'log'], process.env);
  const onStep = (step: RepairStep): void =>
    json ? console.log(JSON.stringify({ saleId, ...step })) : console.error(sentenceOf(step));
  const order = { actor: operatorName(), onStep };
  const end = await withOperator(config, createLog('sale', 'warn'), (operator) =>
    operator.repair(saleId, order, { force }),
  );
  const done = endOf(saleId, end);
  console.log(json ? JSON.stringify({ saleId, ...end }) : done);
}

function sentenceOf(step: RepairStep): string {
  switch (step.step) {
    case 'shut':
      return 'Shut: nobody can buy. Waiting for the workers.';
    case 'quiet':
      return 'The workers are through, or have had their time.';
    case 'epoch':
      return `Epoch ${step.epoch} begins.`;
    case 'staged':
      return stagedSentence(step);
    default:
      return assertNever(step);
  }
}

function stagedSentence({ rows, held, ordersLost }: Extract<RepairStep, { readonly step: 'staged' }>): string {
  const staged = `Staged: ${rows} requests with a row, ${held} that are held without one.`;
  if (ordersLost === 0) return staged;
  return `${staged} MySQL lost ${ordersLost} orders: they keep their units, and seckill reconcile names them.`;
}

function endOf(saleId: string, end: OrderedRepair): string {
  switch (end.outcome) {
    case 'repaired':
      return `Sale ${saleId} is repaired: ${end.unitsLeft} units left, ${(end.tookMs / 1000).toFixed(1)} s.`;
    case 'not_needed':
      return `Sale ${saleId} needs no repair, nothing was changed. With --force it is rebuilt all the same.`;
    case 'busy':
      throw new CliError(`another repair has sale ${saleId}; it ends within seconds.`);
    case 'superseded':
      throw new CliError(`another repair took sale ${saleId} over, or Redis was restarted; look again in a minute.`);
    case 'not_found':
      throw new CliError(`there is no sale ${saleId}.`);
    case 'draft':
      throw new CliError(`sale ${saleId} is a draft: Redis has nothing of it yet.`);
    default:
      return assertNever(end);
  }
}
