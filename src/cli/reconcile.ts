import { Command, InvalidArgumentError, Option } from 'commander';
import { withOperator } from '../programs/operator.js';
import { loadConfig } from '../core/config/load.js';
import { isSaleId } from '../core/ids.js';
import { COMPENSATED_KINDS, type CompensatedKind } from '../core/sale-finding.js';
import { jobBody, runBody, saleResultBody } from '../http/reconcile-bodies.js';
import { createLog } from '../programs/telemetry.js';
import { JOB_STATES, type JobState } from '../core/ports/compensation-repository.js';
import type { ReconcileAdmin } from '../recovery/reconcile/reconcile-admin.js';
import type { SaleResult } from '../recovery/reconcile/sale-report.js';
import { CliError } from './cli-error.js';
import { operatorName } from './dlq-options.js';
import { parseWhole } from './options.js';
import {
  printJob,
  printJobHeading,
  printRun,
  printRunHeading,
  printSale,
  printSaleHeading,
} from './reconcile-print.js';

interface RunFlags {
  readonly sale?: string;
  readonly apply?: boolean;
  readonly wait: number;
  readonly json?: boolean;
}

interface ListFlags {
  readonly sale?: string;
  readonly state?: JobState;
  readonly kind?: CompensatedKind;
  readonly after?: string;
  readonly limit: number;
  readonly json?: boolean;
}

const WAIT_SECONDS_DEFAULT = 30;
const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;
const JOB_ID = /^[1-9][0-9]{0,17}$/;

const EXIT_PARTLY = 1;

const EXAMPLES = `
Examples:
  seckill reconcile                       every sale that is warm, open, paused or closed in the last days
  seckill reconcile --sale 7 --json
  seckill reconcile --sale 7 --apply      mends what it finds, and follows each repair to its end
  seckill reconcile jobs --state failed_final
  seckill reconcile retry 17
  seckill reconcile runs

It is safe on a sale that is selling: nothing young is judged, and nothing is judged on one look.
Exit codes: 0 the books match (or everything was mended), 1 there are findings, or not everything was compared, 2 used wrongly.`;

export function reconcileCommand(): Command {
  const reconcile = new Command('reconcile').description('compare Redis and MySQL, and mend what differs');
  reconcile
    .addHelpText('after', EXAMPLES)
    .option('--sale <saleId>', 'only this sale', parseSaleId)
    .option('--apply', 'make compensation jobs of what is found, and work them off')
    .option('--wait <seconds>', 'how long repairs are followed', parseWhole(0, 3600), WAIT_SECONDS_DEFAULT)
    .option('--json', 'one JSON line per sale, and one for the run')
    .action((flags: RunFlags) => run((admin) => reconcileSales(admin, flags)));

  addLimits(reconcile.command('jobs').description('compensation jobs, oldest first'))
    .addOption(new Option('--state <state>', 'where they stand').choices(JOB_STATES))
    .addOption(new Option('--kind <kind>', 'what was found').choices(COMPENSATED_KINDS))
    .option('--after <jobId>', 'go on behind this job', parseJobId)
    .action((_flags: unknown, command: Command) => run((admin) => listJobs(admin, command.optsWithGlobals())));

  reconcile
    .command('retry')
    .description('give a job a new run of attempts, from now on')
    .argument('<jobId>', 'as `reconcile jobs` shows it', parseJobId)
    .action((jobId: string, _flags: unknown, command: Command) =>
      run((admin) => retry(admin, jobId, command.optsWithGlobals<{ json?: boolean }>().json)),
    );

  addLimits(reconcile.command('runs').description('runs, newest first')).action((_flags: unknown, command: Command) =>
    run((admin) => listRuns(admin, command.optsWithGlobals())),
  );
  return reconcile;
}

/** `--sale` and `--json` stand on the command above. */
const addLimits = (command: Command): Command =>
  command.option('--limit <count>', 'at most so many', parseWhole(1, LIST_MAX), LIST_DEFAULT);

function parseSaleId(text: string): string {
  if (!isSaleId(text)) throw new InvalidArgumentError('must be a whole number.');
  return text;
}

function parseJobId(text: string): string {
  if (!JOB_ID.test(text)) throw new InvalidArgumentError('must be the number of a job.');
  return text;
}

async function run(task: (admin: ReconcileAdmin) => Promise<void>): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'rocketmq', 'reconcile', 'log'], process.env);
  await withOperator(config, createLog('reconcile', 'error'), async (operator) => task(await operator.reconcile()));
}

async function reconcileSales(admin: ReconcileAdmin, { sale, apply = false, wait, json }: RunFlags): Promise<void> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const show = (result: SaleResult): void => {
    if (json) console.log(JSON.stringify(saleResultBody(result)));
    else printSale(result);
  };
  if (!json) printSaleHeading();
  const request = { apply, waitMs: wait * 1000, actor: operatorName(), signal: stopping.signal };
  const result = await admin.run(sale === undefined ? request : { ...request, saleId: sale }, show);
  process.off('SIGINT', stop).off('SIGTERM', stop);
  if (json) console.log(JSON.stringify(result));
  else console.error(`Sales compared: ${result.salesCompared}; ${result.outcome}.`);
  if (result.outcome !== 'match') process.exitCode = EXIT_PARTLY;
}

async function listJobs(admin: ReconcileAdmin, { sale, state, kind, after, limit, json }: ListFlags): Promise<void> {
  const filter = {
    ...(sale === undefined ? {} : { saleId: sale }),
    ...(state === undefined ? {} : { state }),
    ...(kind === undefined ? {} : { kind }),
  };
  const jobs = await admin.jobs(filter, { max: limit, ...(after === undefined ? {} : { afterId: after }) });
  if (!json) printJobHeading();
  for (const job of jobs) {
    if (json) console.log(JSON.stringify(jobBody(job)));
    else printJob(job);
  }
  if (!json && jobs.length === limit) console.error(`There may be more: add --after ${jobs.at(-1)?.jobId}.`);
}

async function retry(admin: ReconcileAdmin, jobId: string, json: boolean | undefined): Promise<void> {
  const outcome = await admin.retry(jobId, operatorName());
  if (outcome === 'not_found') throw new CliError(`there is no compensation job ${jobId}.`);
  if (outcome === 'not_retryable') throw new CliError(`job ${jobId} was given up: the row of its purchase is failed.`);
  if (json) console.log(JSON.stringify({ jobId, outcome }));
  else console.log(outcome === 'retried' ? 'The keeper tries it again now.' : 'It was compensated before.');
}

async function listRuns(admin: ReconcileAdmin, { sale, limit, json }: ListFlags): Promise<void> {
  const runs = await admin.runs(sale === undefined ? {} : { saleId: sale }, limit);
  if (!json) printRunHeading();
  for (const one of runs) {
    if (json) console.log(JSON.stringify(runBody(one)));
    else printRun(one);
  }
}
