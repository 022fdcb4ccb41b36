import { Command, InvalidArgumentError, Option } from 'commander';
import { withConnections } from '../../process/connections.js';
import { loadConfig } from '../../core/config/load.js';
import { amountText } from '../../core/amount-text.js';
import { assertNever } from '../../core/errors.js';
import { isPaymentId } from '../../core/ids.js';
import { createLog } from '../../process/telemetry.js';
import { CASE_STATES, type CaseState } from '../../core/ports/payment-cases.js';
import { REFUND_STATES, type RefundState } from '../../core/ports/refund-repository.js';
import { CliError } from '../../process/cli-error.js';
import { operatorName, parseWhole } from '../../process/options.js';
import { isoTime, print, printError, tableLine } from '../../process/print.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import type { PaymentCase } from './payment-case-store.js';
import type { StoredRefund } from './refund-store.js';
import { caseBody, refundBody } from './routes.js';
import { openRefunds, type RefundServices } from './services.js';

interface ListFlags<State, Id> {
  readonly state: State | 'all';
  readonly after?: Id;
  readonly limit: number;
  readonly json?: boolean;
}
type ListRefunds = ListFlags<RefundState, string>;
type ListCases = ListFlags<CaseState, number>;

const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;

const REFUNDS_EXAMPLES = `
A payment that could not pay its order (too late, twice, a wrong amount) must be refunded. The keeper asks the payment
provider to do so. If the provider refuses, or PAYMENT_PROVIDER is none, a person must refund it.

To refund by hand, run \`refunds done\` FIRST, so that the keeper does not pay too. Pay only after exit code 0.

Examples:
  seckill refunds list                     due refunds, oldest first
  seckill refunds list --state all --json
  seckill refunds done pi_3MtwBwLkdIwHu7   then pay it

Reads and writes MySQL only.
Exit codes: 0 done, 1 not done (already refunded, a keeper is refunding, or no refund is due), 2 wrong usage.`;

export function refundsCommand(): Command {
  const refunds = new Command('refunds')
    .description('list refunds, or claim a refund to pay it by hand')
    .addHelpText('after', REFUNDS_EXAMPLES);
  refunds
    .command('list')
    .description('print one line per refund, oldest first')
    .addOption(
      new Option('--state <state>', 'only refunds in this state').choices([...REFUND_STATES, 'all']).default('due'),
    )
    .option('--after <paymentId>', 'only refunds after this one', parsePaymentId)
    .option('--limit <count>', 'maximum number of refunds', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .option('--json', 'one JSON line per refund')
    .action((flags: ListRefunds) => run('refunds', (services) => listRefunds(services, flags)));
  refunds
    .command('done')
    .description('claim a refund before you pay it by hand; the keeper then leaves it alone')
    .argument('<paymentId>', 'payment id that `refunds list` shows', parsePaymentId)
    .option('--json', 'print one JSON line')
    .action((paymentId: string, { json }: { json?: boolean }) =>
      run('refunds', (services) => takeOn(services, paymentId, json)),
    );
  return refunds;
}

function parsePaymentId(text: string): string {
  if (!isPaymentId(text)) throw new InvalidArgumentError('must be a payment id that `refunds list` shows.');
  return text;
}

async function run(
  name: 'refunds' | 'payment-cases',
  task: (services: RefundServices) => Promise<void>,
): Promise<void> {
  const config = loadConfig(['mysql'], process.env);
  await withConnections(config, createLog(name, 'error'), (connections) => task(openRefunds(connections)));
}

async function listRefunds(
  { refunds, currenciesOf }: RefundServices,
  { state, after, limit, json }: ListRefunds,
): Promise<void> {
  const page = { max: limit, ...withoutUndefined({ afterPaymentId: after }) };
  const found = await refunds.list(state === 'all' ? {} : { state }, page);
  const currencies = json ? new Map<string, string>() : await currenciesOf(found.map(({ orderId }) => orderId));
  if (!json) print(refundLine('payment', 'since', 'state', 'order', 'amount', 'tries', 'reason', 'last error'));
  for (const refund of found) print(json ? JSON.stringify(refundBody(refund)) : lineOfRefund(refund, currencies));
  if (!json && found.length === limit) printError(`For more, add --after ${found.at(-1)?.paymentId}.`);
}

async function takeOn(
  { refunds, currenciesOf }: RefundServices,
  paymentId: string,
  json: boolean | undefined,
): Promise<void> {
  const answer = await refunds.takeOn(paymentId, operatorName());
  switch (answer.outcome) {
    case 'done': {
      const { orderId } = answer.refund;
      if (json) return print(JSON.stringify({ outcome: answer.outcome, refund: refundBody(answer.refund) }));
      const amount = amountOf(answer.refund, await currenciesOf([orderId]));
      return print(`Pay back ${amount} of order ${orderId} now. The keeper will not.`);
    }
    case 'already_refunded':
      throw new CliError(
        `payment ${paymentId} is already refunded, by the provider or by hand. Pay nothing.` +
          ` To see who claimed it: seckill audit list --subject refund:${paymentId}`,
      );
    case 'being_asked':
      throw new CliError(`a keeper is refunding payment ${paymentId} now. Pay nothing, and try again in a minute.`);
    case 'not_found':
      throw new CliError(`payment ${paymentId} has no refund.`);
    default:
      assertNever(answer);
  }
}

function lineOfRefund(refund: StoredRefund, currencies: ReadonlyMap<string, string>): string {
  const { paymentId, createdAtMs, state, orderId, attempts, reason, lastError } = refund;
  return refundLine(
    paymentId,
    isoTime(createdAtMs),
    state,
    orderId,
    amountOf(refund, currencies),
    String(attempts),
    reason,
    lastError ?? '-',
  );
}

/** Formats the amount of a refund. A payment in a currency other than that of its order does not store its currency. */
function amountOf({ orderId, amountCents, reason }: StoredRefund, currencies: ReadonlyMap<string, string>): string {
  const currency = reason === 'wrong_currency' ? undefined : currencies.get(orderId);
  return currency === undefined ? `${amountCents} in an unknown currency` : amountText(amountCents, currency);
}

const refundLine = tableLine(32, 24, 8, 19, 14, 5, 18);

const CASES_EXAMPLES = `
Kinds of cases:
  unrecorded          money was taken that cannot be recorded: give it back at the payment provider, or find its order
  refund_failed       a refund did not arrive: pay the buyer by hand
  refunded_elsewhere  somebody refunded a payment at the provider, and the amount fits no paid order
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
    .addHelpText('after', CASES_EXAMPLES);
  cases
    .command('list')
    .description('print one line per case, oldest first')
    .addOption(
      new Option('--state <state>', 'only cases in this state').choices([...CASE_STATES, 'all']).default('open'),
    )
    .option('--after <caseId>', 'only cases after this one', parseWhole(1, Number.MAX_SAFE_INTEGER))
    .option('--limit <count>', 'maximum number of cases', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .option('--json', 'one JSON line per case')
    .action((flags: ListCases) => run('payment-cases', (services) => listCases(services, flags)));
  cases
    .command('close')
    .description('mark a case as handled')
    .argument('<caseId>', 'number that `payment-cases list` shows', parseWhole(1, Number.MAX_SAFE_INTEGER))
    .option('--json', 'print one JSON line')
    .action((caseId: number, { json }: { json?: boolean }) =>
      run('payment-cases', (services) => closeCase(services, String(caseId), json)),
    );
  return cases;
}

async function listCases({ paymentCases }: RefundServices, { state, after, limit, json }: ListCases): Promise<void> {
  const page = { max: limit, ...withoutUndefined({ afterCaseId: after === undefined ? undefined : String(after) }) };
  const found = await paymentCases.list(state === 'all' ? {} : { state }, page);
  if (!json) print(caseLine('case', 'since', 'state', 'kind', 'order', 'amount', 'payment', 'detail'));
  for (const one of found) print(json ? JSON.stringify(caseBody(one)) : lineOfCase(one));
  if (!json && found.length === limit) printError(`For more, add --after ${found.at(-1)?.caseId}.`);
}

async function closeCase({ paymentCases }: RefundServices, caseId: string, json: boolean | undefined): Promise<void> {
  const closed = await paymentCases.close(caseId, operatorName());
  if (closed === null) throw new CliError(`there is no case ${caseId}.`);
  print(json ? JSON.stringify(caseBody(closed)) : `case ${caseId} is closed.`);
}

function lineOfCase({
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
  return caseLine(caseId, isoTime(createdAtMs), state, kind, orderId ?? '-', amount, paymentId ?? '-', detail);
}

const caseLine = tableLine(6, 24, 6, 18, 19, 14, 32);
