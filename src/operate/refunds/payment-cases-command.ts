import { Command, Option } from 'commander';
import { createPaymentCases } from '../../mysql/payment-cases.js';
import { amountText } from '../../core/amount-text.js';
import { loadConfig } from '../../core/config/load.js';
import { CASE_STATES, type CaseState, type PaymentCase, type PaymentCases } from '../../core/ports/payment-cases.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { caseBody } from './routes.js';
import { withConnections } from '../../process/connections.js';
import { createLog } from '../../process/telemetry.js';
import { CliError } from '../../process/cli-error.js';
import { operatorName, parseWhole } from '../../process/options.js';
import { isoTime, print, printError, tableLine } from '../../process/print.js';

interface ListFlags {
  readonly state: CaseState | 'all';
  readonly after?: number;
  readonly limit: number;
  readonly json?: boolean;
}

const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;

const EXAMPLES = `
Kinds of cases:
  unrecorded          money was taken that cannot be recorded: give it back at the payment provider, or find its order
  refund_failed       a refund did not arrive: pay the buyer by hand
  refunded_elsewhere  somebody refunded a payment at the provider; its order is still paid here
  disputed            the bank of a buyer wants the money back: answer at the provider
  refunded_twice      the provider made a refund that a person may also have paid by hand

Examples:
  seckill payment-cases list               open cases, oldest first
  seckill payment-cases list --state all --json
  seckill payment-cases close 7            marks it as handled; a new report of the provider reopens it

Reads and writes MySQL only.
Exit codes: 0 done, 1 not done (there is no such case, or MySQL is down), 2 wrong usage.`;

export function paymentCasesCommand(): Command {
  const cases = new Command('payment-cases')
    .description('list or close cases that need a person: failed refunds, disputes, payments without an order')
    .addHelpText('after', EXAMPLES);
  cases
    .command('list')
    .description('print one line per case, oldest first')
    .addOption(
      new Option('--state <state>', 'only cases in this state').choices([...CASE_STATES, 'all']).default('open'),
    )
    .option('--after <caseId>', 'only cases after this one', parseWhole(1, Number.MAX_SAFE_INTEGER))
    .option('--limit <count>', 'maximum number of cases', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .option('--json', 'one JSON line per case')
    .action((flags: ListFlags) => run((repository) => list(repository, flags)));
  cases
    .command('close')
    .description('mark a case as handled')
    .argument('<caseId>', 'number that `payment-cases list` shows', parseWhole(1, Number.MAX_SAFE_INTEGER))
    .option('--json', 'print one JSON line')
    .action((caseId: number, { json }: { json?: boolean }) =>
      run((repository) => close(repository, String(caseId), json)),
    );
  return cases;
}

async function run(task: (repository: PaymentCases) => Promise<void>): Promise<void> {
  const config = loadConfig(['mysql'], process.env);
  await withConnections(config, createLog('payment-cases', 'error'), (connections) =>
    task(createPaymentCases(connections.mysql())),
  );
}

async function list(repository: PaymentCases, { state, after, limit, json }: ListFlags): Promise<void> {
  const page = { max: limit, ...withoutUndefined({ afterCaseId: after === undefined ? undefined : String(after) }) };
  const found = await repository.list(state === 'all' ? {} : { state }, page);
  if (!json) print(line('case', 'since', 'state', 'kind', 'order', 'amount', 'payment', 'detail'));
  for (const one of found) print(json ? JSON.stringify(caseBody(one)) : lineOf(one));
  if (!json && found.length === limit) printError(`For more, add --after ${found.at(-1)?.caseId}.`);
}

async function close(repository: PaymentCases, caseId: string, json: boolean | undefined): Promise<void> {
  const closed = await repository.close(caseId, operatorName());
  if (closed === null) throw new CliError(`there is no case ${caseId}.`);
  print(json ? JSON.stringify(caseBody(closed)) : `case ${caseId} is closed.`);
}

function lineOf({
  caseId,
  createdAtMs,
  state,
  kind,
  orderId,
  amountCents,
  currency,
  paymentId,
  detail,
}: PaymentCase): string {
  const amount = amountCents === null || currency === null ? '-' : amountText(amountCents, currency);
  return line(caseId, isoTime(createdAtMs), state, kind, orderId ?? '-', amount, paymentId ?? '-', detail);
}

const line = tableLine(6, 24, 6, 18, 19, 14, 32);
