import { Command, Option } from 'commander';
import { assertNever } from '../../core/errors.js';
import { JOB_STATES, type CompensationJob, type JobState } from '../../core/ports/compensation-repository.js';
import type { ReconcileRun } from '../../core/ports/reconcile-runs.js';
import { COMPENSATED_KINDS, describeFinding, type CompensatedKind } from '../../core/sale-finding.js';
import { withConfigured } from '../../process/connections.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { limitOption, operatorName, parseRowNumber, parseSaleId, parseWhole } from '../../process/options.js';
import { inLine, isoTime, print, printError, printPage, tableLine } from '../../process/print.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import type { ReconcileAdmin } from './reconcile-admin.js';
import { jobBody, runBody, saleResultBody } from './routes.js';
import type { SaleResult } from './sale-report.js';
import { RESOLUTIONS, RESOLVE_MODES, type ResolvedOrder, type ResolveMode, type SaleResolved } from './resolve-lost.js';
import { openReconcile, openResolve } from './services.js';

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

interface ResolveFlags extends RunFlags, Readonly<Partial<Record<ResolveMode, boolean>>> {
  readonly dryRun?: boolean;
}

const FINDINGS_SHOWN = 20;

const EXIT_PARTLY = 1;

const EXAMPLES = `
Compares each sale in Redis and MySQL, purchase by purchase and unit by unit. It reports a difference only if it is 2 minutes
old and was seen twice, so it is safe while a sale sells. With --apply, each repairable difference becomes a job with up to
five attempts. docs/operations.md lists the kinds.

Examples:
  seckill reconcile                       all sales that are warm, open, paused, or closed in the last 8 days
  seckill reconcile --sale 7 --json
  seckill reconcile --sale 7 --apply      also repairs, and waits for each repair
  seckill reconcile jobs --state failed_final
  seckill reconcile retry 17
  seckill reconcile runs
  seckill reconcile resolve --auto --dry-run    after a restore of MySQL: what would become of each lost order

Exit codes: 0 Redis and MySQL match (or everything was repaired), 1 something differs, or not everything was compared,
2 wrong usage.`;

const SALE_OPTION = ['--sale <saleId>', 'only this sale', parseSaleId] as const;
const WAIT_OPTION = ['--wait <seconds>', 'time to wait for repairs, 0 to 3600', parseWhole(0, 3600), 30] as const;
const JSON_OPTION = ['--json', 'print JSON lines'] as const;

/** Commander gives options that two commands have to the parent. Subcommands repeat them for `--help`. */
export function reconcileCommand(): Command {
  const reconcile = new Command('reconcile').description('compare Redis and MySQL, and repair differences');
  const jobId = parseRowNumber('reconcile jobs');
  reconcile
    .addHelpText('after', EXAMPLES)
    .option(...SALE_OPTION)
    .option('--apply', 'repair the differences')
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line per sale and one for the run')
    .action((flags: RunFlags) => run((admin) => reconcileSales(admin, flags)));

  addListOptions(reconcile.command('jobs').description('list compensation jobs, oldest first'))
    .addOption(new Option('--state <state>', 'only jobs in this state').choices(JOB_STATES))
    .addOption(new Option('--kind <kind>', 'only jobs of this finding').choices(COMPENSATED_KINDS))
    .option('--after <jobId>', 'only jobs after this one', jobId)
    .action((_flags: unknown, command: Command) => run((admin) => listJobs(admin, command.optsWithGlobals())));

  reconcile
    .command('retry')
    .description('give a failed job five more attempts')
    .argument('<jobId>', 'number that `reconcile jobs` shows', jobId)
    .option(...JSON_OPTION)
    .action((id: string, _flags: unknown, command: Command) =>
      run((admin) => retry(admin, id, command.optsWithGlobals<{ json?: boolean }>().json)),
    );

  addListOptions(reconcile.command('runs').description('list earlier comparisons, newest first')).action(
    (_flags: unknown, command: Command) => run((admin) => listRuns(admin, command.optsWithGlobals())),
  );
  addResolve(reconcile);
  return reconcile;
}

const RESOLVE_DETAILS = `
After MySQL was restored, Redis may know orders that MySQL lost (\`order_lost\`). Each gets its row again, under its old id.
  --write  writes it as an unpaid order with a new deadline, and as a failed order if it had ended. Then let your payment provider
           send its reports again: they mark the paid orders as paid
  --fail   writes it as a failed order, and its units are for sale again. Money that is reported for it later is refunded
  --auto   writes the orders that a message or an event at the broker (NAMESRV_ADDR) confirms, and fails the others

Buyers see the result at once. The audit log has every order. Repeat the command after any interruption. docs/durability.md has the
whole procedure. Without --sale it works on every sale that \`seckill reconcile\` compares, and asks a keeper to rebuild closed sales.

Examples:
  seckill reconcile resolve --auto --dry-run
  seckill reconcile resolve --write --sale 7 --json

Exit codes: 0 no lost order is left, 1 some are left, or a sale was not looked at, 2 wrong usage.`;

function addResolve(reconcile: Command): void {
  const resolve = reconcile
    .command('resolve')
    .description('decide what becomes of orders that MySQL lost in a restore');
  const modes = RESOLVE_MODES.map((mode) => `--${mode}`);
  resolve
    .option('--write', 'write each lost order again')
    .option('--fail', 'fail each lost order, and return its units')
    .option('--auto', 'write the orders that the broker confirms, and fail the others')
    .option('--dry-run', 'only show what would be done')
    .option(...SALE_OPTION)
    .option(...WAIT_OPTION)
    .option('--json', 'print one JSON line per order and one per sale')
    .addHelpText('after', RESOLVE_DETAILS)
    .action(async (_flags: unknown, command: Command) => {
      const flags = command.optsWithGlobals<ResolveFlags>();
      const [mode, ...more] = RESOLVE_MODES.filter((one) => flags[one]);
      if (mode === undefined || more.length > 0) throw new UsageError(`give one of ${modes.join(', ')}.`);
      await resolveSales(mode, flags);
    });
}

/** Maximum number of lost orders in memory at a time. */
const RESOLVED_AT_ONCE = 20_000;

async function resolveSales(mode: ResolveMode, { sale, wait, dryRun = false, json }: ResolveFlags): Promise<void> {
  const sections = ['mysql', 'redis', 'rocketmq', 'brokerAccess', 'messages', 'reconcile', 'repair', 'order'] as const;
  await withConfigured('reconcile', sections, async (connections) => {
    const { reconcile } = await openReconcile(connections);
    const { resolveLost } = await openResolve(connections);
    if (!json) print(resolvedLine('outcome', 'sale', 'order', 'buyer', 'request', 'evidence', 'reason or note'));
    const request = { mode, dryRun, max: RESOLVED_AT_ONCE, waitMs: wait * 1000, actor: operatorName() };
    const show = (order: ResolvedOrder): void => (json ? print(JSON.stringify(order)) : printResolved(order));
    for (const saleId of sale === undefined ? await reconcile.recentSales() : [sale]) {
      let result: SaleResolved;
      let isStuck: boolean;
      do {
        result = await resolveLost({ ...request, saleId }, show);
        // Orders that are left would be found again.
        isStuck = result.outcome !== 'resolved' || !result.more || dryRun || result.counts.left > 0;
      } while (!isStuck);
      if (json) print(JSON.stringify(result));
      else printError(sentenceOf(result, dryRun));
      if (!isResolved(result)) process.exitCode = EXIT_PARTLY;
    }
  });
}

const isResolved = (result: SaleResolved): boolean =>
  result.outcome === 'resolved' && !result.more && result.counts.left === 0;

const resolvedLine = tableLine(10, 8, 20, 16, 16, 16);

function printResolved({ outcome, saleId, orderId, userId, requestId, evidence, reason, note }: ResolvedOrder): void {
  const why = [reason, note].filter((one) => one !== null).join('; ');
  print(inLine(resolvedLine(outcome, saleId, orderId ?? '-', userId, requestId, evidence.join(',') || '-', why)));
}

function sentenceOf(result: SaleResolved, dryRun: boolean): string {
  switch (result.outcome) {
    case 'resolved': {
      const counts = RESOLUTIONS.map((word) => `${result.counts[word]} ${word}`).join(', ');
      const more = result.more ? ' There are more lost orders.' : '';
      const silent = result.silent === null ? '' : ` The broker was not searched completely: ${result.silent}.`;
      return `${dryRun ? 'Dry run, nothing was changed. ' : ''}Sale ${result.saleId}: ${counts}.${more}${silent}`;
    }
    case 'not_loaded':
      return `Sale ${result.saleId}: a keeper must rebuild it in Redis first. Start a keeper, or give --wait more time.`;
    case 'taken':
      return `Sale ${result.saleId}: ${result.owner} is comparing it, until ${isoTime(result.untilMs)} at most.`;
    case 'not_found':
      return `Sale ${result.saleId}: does not exist.`;
    default:
      return assertNever(result);
  }
}

const addListOptions = (command: Command): Command =>
  command
    .option(...SALE_OPTION)
    .addOption(limitOption('lines'))
    .option(...JSON_OPTION);

async function run(task: (admin: ReconcileAdmin) => Promise<void>): Promise<void> {
  const sections = ['mysql', 'redis', 'rocketmq', 'brokerAccess', 'messages', 'reconcile'] as const;
  await withConfigured('reconcile', sections, async (connections) =>
    task((await openReconcile(connections)).reconcile),
  );
}

async function reconcileSales(admin: ReconcileAdmin, { sale, apply = false, wait, json }: RunFlags): Promise<void> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  if (!json) printSaleHeading();
  const request = { apply, waitMs: wait * 1000, actor: operatorName(), signal: stopping.signal };
  const result = await admin.run(sale === undefined ? request : { ...request, saleId: sale }, (one) => {
    if (json) print(JSON.stringify(saleResultBody(one)));
    else printSale(one);
  });
  process.off('SIGINT', stop).off('SIGTERM', stop);
  if (json) print(JSON.stringify(result));
  else printError(`Sales compared: ${result.salesCompared}; ${result.outcome}.`);
  if (result.outcome !== 'match') process.exitCode = EXIT_PARTLY;
}

const NOT_IN_REDIS = 'Only the rows of this closed sale were checked, because Redis has not loaded it.';
const saleLine = tableLine(18, 10, 9, 9, 9, 9, 10, 8, 8);

const printSaleHeading = (): void =>
  print(saleLine('sale', 'outcome', 'stock', 'sold', 'left', 'buyers', 'difference', 'young', 'waiting'));

function printSale(result: SaleResult): void {
  switch (result.outcome) {
    case 'not_found':
      return print(saleLine(result.saleId, 'not_found'));
    case 'taken':
      return print(
        saleLine(result.saleId, 'taken', `${result.owner} is comparing it, until ${isoTime(result.untilMs)} at most`),
      );
    case 'failed':
      return print(saleLine(result.saleId, 'failed', result.error.message));
    case 'compared': {
      const { saleId, outcome, figures, findings, counts } = result.report;
      const { stock, sold, unitsLeft, unitsOfBuyers, difference, moving, young, waiting, unseen } = figures;
      const apart = moving === 1 ? `${difference} moving` : String(difference);
      const units = [stock, sold, unitsLeft, unitsOfBuyers].map(String);
      print(saleLine(saleId, outcome, ...units, apart, String(young), String(waiting)));
      if (unseen > 0) print(`  ${unseen} more differences were not read a second time. Run the command again.`);
      else if (outcome === 'partly') print(`  ${NOT_IN_REDIS}`);
      for (const finding of findings.slice(0, FINDINGS_SHOWN)) {
        print(inLine(`  ${finding.kind.padEnd(15)} ${describeFinding(finding)}`));
      }
      const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
      if (all > FINDINGS_SHOWN) print(`  … ${all} in total`);
      for (const { jobId, state, lastError } of result.jobs.slice(0, FINDINGS_SHOWN)) {
        print(inLine(`  job ${jobId.padEnd(9)} ${state.padEnd(13)} ${lastError ?? ''}`.trimEnd()));
      }
      return;
    }
    default:
      return assertNever(result);
  }
}

const jobLine = tableLine(8, 15, 13, 18, 8, 24);

async function listJobs(admin: ReconcileAdmin, { sale, state, kind, after, ...flags }: ListFlags): Promise<void> {
  const filter = withoutUndefined({ saleId: sale, state, kind });
  const jobs = await admin.jobs(filter, { max: flags.limit, ...withoutUndefined({ afterId: after }) });
  printPage(jobs, flags, {
    header: jobLine('job', 'kind', 'state', 'sale', 'attempts', 'due', 'finding; last error'),
    line: lineOfJob,
    body: jobBody,
    next: ({ jobId }) => `--after ${jobId}`,
  });
}

function lineOfJob({
  jobId,
  kind,
  state,
  saleId,
  attempts,
  availableAtMs,
  detail,
  lastError,
}: CompensationJob): string {
  const due = state === 'pending' ? isoTime(availableAtMs) : '-';
  const what = lastError === null ? detail : `${detail}; ${lastError}`;
  return jobLine(jobId, kind, state, saleId, String(attempts), due, what);
}

async function retry(admin: ReconcileAdmin, jobId: string, json: boolean | undefined): Promise<void> {
  const outcome = await admin.retry(jobId, operatorName());
  if (outcome === 'not_found') throw new CliError(`there is no compensation job ${jobId}.`);
  if (outcome === 'not_retryable') {
    throw new CliError(`job ${jobId} cannot be retried, because its purchase ended as a failed order.`);
  }
  if (json) print(JSON.stringify({ jobId, outcome }));
  else print(outcome === 'retried' ? 'The keeper retries it now.' : 'It is already repaired.');
}

const runLine = tableLine(8, 24, 18, 8, 10, 16);

async function listRuns(admin: ReconcileAdmin, { sale, limit, json }: ListFlags): Promise<void> {
  const runs = await admin.runs(withoutUndefined({ saleId: sale }), limit);
  if (!json) print(runLine('run', 'started at', 'sale', 'applied', 'outcome', 'actor', 'findings'));
  for (const one of runs) {
    if (json) print(JSON.stringify(runBody(one)));
    else printRun(one);
  }
}

function printRun({ runId, startedAtMs, saleId, applied, outcome, actor, findings }: ReconcileRun): void {
  const words = [saleId ?? 'all', applied ? 'yes' : 'no', outcome ?? 'no end', actor];
  print(runLine(runId, isoTime(startedAtMs), ...words, String(findings.length)));
}
