import { Command, Option } from 'commander';
import { createPaymentCases } from '../mysql/payment-cases.js';
import { amountText } from '../core/amount-text.js';
import { loadConfig } from '../core/config/load.js';
import { CASE_STATES, type CaseState, type PaymentCase, type PaymentCases } from '../core/ports/payment-cases.js';
import { withoutUndefined } from '../core/without-undefined.js';
import { caseBody } from '../http/routes/payment-cases.js';
import { withConnections } from '../process/connections.js';
import { createLog } from '../process/telemetry.js';
import { CliError } from '../process/cli-error.js';
import { operatorName, parseWhole } from '../process/options.js';
import { isoTime, print, printError, tableLine } from '../process/print.js';

interface ListFlags {
  readonly state: CaseState | 'all';
  readonly after?: number;
  readonly limit: number;
  readonly json?: boolean;
}

const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;

const EXAMPLES = `
What a case is about:
  unrecorded          money was taken that cannot be recorded: give it back at the payment provider, or find its order
  refund_failed       a refund did not arrive: pay the buyer by hand
  refunded_elsewhere  somebody gave a payment back at the provider; its order is still paid here
  disputed            the bank of a buyer wants the money back: answer at the provider
  refunded_twice      a refund was made by the provider, and perhaps by hand as well

Examples:
  seckill payment-cases list               what is open, oldest first
  seckill payment-cases list --state all --json
  seckill payment-cases close 7            you have dealt with it; news of the provider opens it again

Reads and writes MySQL only.
Exit codes: 0 done, 1 not done (there is no such case, or MySQL is away), 2 used wrongly.`;

export function paymentCasesCommand(): Command {
  const cases = new Command('payment-cases')
    .description('money that a person has to look after: refunds that failed, disputes, payments without an order')
    .addHelpText('after', EXAMPLES);
  cases
    .command('list')
    .description('one line per case, oldest first')
    .addOption(
      new Option('--state <state>', 'only those in this state').choices([...CASE_STATES, 'all']).default('open'),
    )
    .option('--after <caseId>', 'only those after this one', parseWhole(1, Number.MAX_SAFE_INTEGER))
    .option('--limit <count>', 'at most so many', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .option('--json', 'one JSON line per case')
    .action((flags: ListFlags) => run((repository) => list(repository, flags)));
  cases
    .command('close')
    .description('say that a case is dealt with')
    .argument('<caseId>', 'as `payment-cases list` shows it', parseWhole(1, Number.MAX_SAFE_INTEGER))
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
  if (!json && found.length === limit) printError(`There may be more: add --after ${found.at(-1)?.caseId}.`);
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
