import { Command, InvalidArgumentError, Option } from 'commander';
import { createRefundRepository } from '../../mysql/refund-repository.js';
import { createOrderSearch } from '../../mysql/order-search.js';
import { withConnections } from '../../process/connections.js';
import { loadConfig } from '../../core/config/load.js';
import { amountText } from '../../core/amount-text.js';
import { assertNever } from '../../core/errors.js';
import { isPaymentId } from '../../core/ids.js';
import { refundBody } from './refund-routes.js';
import { createLog } from '../../process/telemetry.js';
import {
  REFUND_STATES,
  type RefundRepository,
  type RefundState,
  type StoredRefund,
} from '../../core/ports/refund-repository.js';
import type { OrderSearch } from '../../core/ports/order-search.js';
import { CliError } from '../../process/cli-error.js';
import { operatorName, parseWhole } from '../../process/options.js';
import { isoTime, print, printError, tableLine } from '../../process/print.js';
import { withoutUndefined } from '../../core/without-undefined.js';

type CurrenciesOf = OrderSearch['currenciesOf'];

interface ListFlags {
  readonly state: RefundState | 'all';
  readonly after?: string;
  readonly limit: number;
  readonly json?: boolean;
}

const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;

const EXAMPLES = `
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
    .addHelpText('after', EXAMPLES);
  refunds
    .command('list')
    .description('print one line per refund, oldest first')
    .addOption(
      new Option('--state <state>', 'only refunds in this state').choices([...REFUND_STATES, 'all']).default('due'),
    )
    .option('--after <paymentId>', 'only refunds after this one', parsePaymentId)
    .option('--limit <count>', 'maximum number of refunds', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .option('--json', 'one JSON line per refund')
    .action((flags: ListFlags) => run((repository, currenciesOf) => list(repository, currenciesOf, flags)));
  refunds
    .command('done')
    .description('claim a refund before you pay it by hand; the keeper then leaves it alone')
    .argument('<paymentId>', 'payment id that `refunds list` shows', parsePaymentId)
    .option('--json', 'print one JSON line')
    .action((paymentId: string, { json }: { json?: boolean }) =>
      run((repository, currenciesOf) => takeOn(repository, currenciesOf, { paymentId, json })),
    );
  return refunds;
}

function parsePaymentId(text: string): string {
  if (!isPaymentId(text)) throw new InvalidArgumentError('must be a payment id that `refunds list` shows.');
  return text;
}

async function run(task: (repository: RefundRepository, currenciesOf: CurrenciesOf) => Promise<void>): Promise<void> {
  const config = loadConfig(['mysql'], process.env);
  await withConnections(config, createLog('refunds', 'error'), (connections) => {
    const orders = createOrderSearch(connections.mysql());
    return task(createRefundRepository(connections.mysql()), (orderIds) => orders.currenciesOf(orderIds));
  });
}

async function list(
  repository: RefundRepository,
  currenciesOf: CurrenciesOf,
  { state, after, limit, json }: ListFlags,
): Promise<void> {
  const page = { max: limit, ...withoutUndefined({ afterPaymentId: after }) };
  const found = await repository.list(state === 'all' ? {} : { state }, page);
  const currencies = json ? new Map<string, string>() : await currenciesOf(found.map(({ orderId }) => orderId));
  if (!json) print(line('payment', 'since', 'state', 'order', 'amount', 'tries', 'reason', 'last error'));
  for (const refund of found) print(json ? JSON.stringify(refundBody(refund)) : lineOf(refund, currencies));
  if (!json && found.length === limit) printError(`For more, add --after ${found.at(-1)?.paymentId}.`);
}

async function takeOn(
  repository: RefundRepository,
  currenciesOf: CurrenciesOf,
  { paymentId, json }: { readonly paymentId: string; readonly json: boolean | undefined },
): Promise<void> {
  const answer = await repository.takeOn(paymentId, operatorName());
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

function lineOf(refund: StoredRefund, currencies: ReadonlyMap<string, string>): string {
  const { paymentId, createdAtMs, state, orderId, attempts, reason, lastError } = refund;
  return line(
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

const line = tableLine(32, 24, 8, 19, 14, 5, 18);
