import { Command, InvalidArgumentError, Option } from 'commander';
import { withConfigured } from '../../process/connections.js';
import { amountText } from '../../core/amount-text.js';
import { assertNever } from '../../core/errors.js';
import { isPaymentId } from '../../core/ids.js';
import { ORDER_REFUND_STATES, type OrderRefundState } from '../../core/ports/order-refunds.js';
import { CASE_STATES } from '../../core/ports/payment-cases.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { addListAndClose, type ListFlags } from '../../process/closable.js';
import { limitOption, operatorName, parseSaleId, subcommand } from '../../process/options.js';
import { isoTime, print, printPage, tableLine } from '../../process/print.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import type { PaymentCase } from './payment-case-store.js';
import { REFUND_NAME, refundName, storedOrderRefund, type StoredRefund } from './refund-store.js';
import { caseBody, isOfOtherCurrency, refundBody, whyNotAgain } from './routes.js';
import { openRefunds, type RefundServices } from './services.js';

interface RefundFlags {
  readonly reason?: string;
  readonly json?: boolean;
}

const REFUNDS_EXAMPLES = `
A payment that could not pay its order (too late, twice, a wrong amount) must be refunded, and has the id of the payment.
A refund that an operator ordered has a number: order/12. The keeper asks the payment provider for both. If the provider
refuses, or PAYMENT_PROVIDER is none, a person must refund it.

To refund by hand, run \`refunds done\` FIRST, so that the keeper does not pay too. Pay only after exit code 0.

Examples:
  seckill refunds list                     due refunds, oldest first
  seckill refunds list --state failed --sale 7 --json
  seckill refunds retry order/12 --reason 'the card works again'
  seckill refunds done order/12 --reason 'by bank transfer'   then pay it
  seckill refunds done pi_3MtwBwLkdIwHu7   then pay it

Reads and writes MySQL only.
Exit codes: 0 done, 1 not done (already refunded, a keeper is refunding, or no refund is due), 2 wrong usage.`;

export function refundsCommand(): Command {
  const refunds = new Command('refunds')
    .description('list refunds, try a failed refund again, or claim a refund to pay it by hand')
    .addHelpText('after', REFUNDS_EXAMPLES);
  subcommand(
    refunds,
    'list',
    'print one line per refund: first of payments that paid no order, then of orders, each oldest first',
  )
    .addOption(
      new Option('--state <state>', 'only refunds in this state')
        .choices([...ORDER_REFUND_STATES, 'all'])
        .default('due'),
    )
    .option('--sale <saleId>', 'only refunds of this sale', parseSaleId)
    .option('--after <refund>', 'only refunds after this one', parseRefund)
    .addOption(limitOption('refunds'))
    .option('--json', 'one JSON line per refund')
    .action((flags: ListFlags<OrderRefundState>) => run('refunds', (services) => listRefunds(services, flags)));
  subcommand(refunds, 'done', 'claim a refund before you pay it by hand; the keeper then leaves it alone')
    .argument('<refund>', 'first column of `refunds list`', parseRefund)
    .option('--reason <text>', 'for the audit log; needed for order/…')
    .option('--json', 'print one JSON line')
    .action((refund: string, flags: RefundFlags) => run('refunds', (services) => takeOn(services, refund, flags)));
  subcommand(refunds, 'retry', 'order a failed refund of a paid order once more')
    .argument('<refund>', 'such as order/12, first column of `refunds list`', parseOrderRefund)
    .requiredOption('--reason <text>', 'for the audit log')
    .option('--json', 'print one JSON line')
    .action((refundId: string, flags: Required<RefundFlags>) =>
      run('refunds', (services) => retry(services, refundId, flags)),
    );
  return refunds;
}

function parseRefund(text: string): string {
  if (isPaymentId(text) || REFUND_NAME.test(text)) return text;
  throw new InvalidArgumentError('must be in the first column of `refunds list`.');
}

function parseOrderRefund(text: string): string {
  const [, refundId] = REFUND_NAME.exec(text) ?? [];
  if (refundId !== undefined) return refundId;
  throw new InvalidArgumentError('must be a refund of a paid order, such as order/12.');
}

async function run(
  name: 'refunds' | 'payment-cases',
  task: (services: RefundServices) => Promise<void>,
): Promise<void> {
  await withConfigured(name, ['mysql', 'redis'], (connections) => task(openRefunds(connections)));
}

async function listRefunds(
  { refunds, currenciesOf }: RefundServices,
  { state, sale, after, ...flags }: ListFlags<OrderRefundState>,
): Promise<void> {
  const page = { max: flags.limit, ...withoutUndefined({ after }) };
  const filter = withoutUndefined({ state: state === 'all' ? undefined : state, saleId: sale });
  const found = await refunds.list(filter, page);
  const currencies = flags.json ? new Map<string, string>() : await currenciesOf(found.map(({ orderId }) => orderId));
  printPage(found, flags, {
    header: refundLine('refund', 'since', 'state', 'order', 'amount', 'tries', 'reason', 'last error'),
    line: (refund) => lineOfRefund(refund, currencies),
    body: refundBody,
    next: (last) => `--after ${refundName(last)}`,
  });
}

async function takeOn(services: RefundServices, name: string, { reason, json }: RefundFlags): Promise<void> {
  const [, refundId] = REFUND_NAME.exec(name) ?? [];
  if (refundId === undefined) return takeOnPayment(services, name, json);
  if (reason === undefined) throw new UsageError(`give --reason with ${name}.`);
  const answer = await services.orderRefunds.takeOnRefund(refundId, reason, operatorName());
  if (answer.outcome === 'not_found') throw new CliError(`there is no refund ${name}.`);
  if (answer.outcome !== 'done') throw new CliError(`refund ${name}: ${whyNotAgain(answer)}`);
  return taken(services, storedOrderRefund(answer.refund), json);
}

async function taken({ currenciesOf }: RefundServices, refund: StoredRefund, json: boolean | undefined): Promise<void> {
  const { orderId } = refund;
  if (json) return print(JSON.stringify({ outcome: 'done', refund: refundBody(refund) }));
  const amount = amountOf(refund, await currenciesOf([orderId]));
  print(`Pay back ${amount} of order ${orderId} now. The keeper will not.`);
}

async function retry({ orderRefunds }: RefundServices, refundId: string, { reason, json }: RefundFlags): Promise<void> {
  const answer = await orderRefunds.again(refundId, reason ?? '', operatorName());
  if (answer.outcome === 'not_found') throw new CliError(`there is no refund order/${refundId}.`);
  if (answer.outcome !== 'refunding' && answer.outcome !== 'refunded')
    throw new CliError(`refund order/${refundId}: ${whyNotAgain(answer)}`);
  const { outcome, refund } = answer;
  if (json) return print(JSON.stringify({ outcome, refund: refundBody(storedOrderRefund(refund)) }));
  print(
    outcome === 'refunded'
      ? `The money went back as order/${refund.refundId}.`
      : `The keeper makes refund order/${refund.refundId}.`,
  );
}

async function takeOnPayment(services: RefundServices, paymentId: string, json: boolean | undefined): Promise<void> {
  const answer = await services.refunds.takeOn(paymentId, operatorName());
  switch (answer.outcome) {
    case 'done':
      return taken(services, answer.refund, json);
    case 'already_refunded':
      throw new CliError(
        `payment ${paymentId} is already refunded, by the provider or by hand. Pay nothing.` +
          ` To see who claimed it: seckill audit list --subject refund:${paymentId}`,
      );
    case 'being_asked':
      throw new CliError(`a keeper is refunding payment ${paymentId} now. Pay nothing, and try again in a minute.`);
    case 'not_found':
      throw new CliError(`payment ${paymentId} has no due refund.`);
    default:
      assertNever(answer);
  }
}

function lineOfRefund(refund: StoredRefund, currencies: ReadonlyMap<string, string>): string {
  const { createdAtMs, state, orderId, attempts, reason, lastError } = refund;
  return refundLine(
    refundName(refund),
    isoTime(createdAtMs),
    state,
    orderId,
    amountOf(refund, currencies),
    String(attempts),
    reason,
    lastError ?? '-',
  );
}

function amountOf(refund: StoredRefund, currencies: ReadonlyMap<string, string>): string {
  const { orderId, amountCents } = refund;
  const currency = isOfOtherCurrency(refund) ? undefined : currencies.get(orderId);
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

const caseLine = tableLine(6, 24, 6, 18, 19, 14, 32);

export function paymentCasesCommand(): Command {
  const cases = new Command('payment-cases')
    .description('list or close cases that need a person: failed refunds, disputes, payments without an order')
    .addHelpText('after', CASES_EXAMPLES);
  addListAndClose(cases, {
    noun: 'case',
    states: CASE_STATES,
    withStore: (task) =>
      run('payment-cases', ({ paymentCases }) =>
        task({
          list: ({ state }, { after, max }) =>
            paymentCases.list(withoutUndefined({ state }), { max, ...withoutUndefined({ afterCaseId: after }) }),
          close: (caseId, actor) => paymentCases.close(caseId, actor),
        }),
      ),
    idOf: ({ caseId }) => caseId,
    body: caseBody,
    header: caseLine('case', 'since', 'state', 'kind', 'order', 'amount', 'payment', 'detail'),
    line: lineOfCase,
  });
  return cases;
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
