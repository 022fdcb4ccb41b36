import { Command, InvalidArgumentError, Option } from 'commander';
import { withOperator } from '../programs/operator.js';
import { loadConfig } from '../core/config/load.js';
import { assertNever } from '../core/errors.js';
import { isPaymentId } from '../core/ids.js';
import { createLog } from '../programs/telemetry.js';
import { refundBody } from '../http/refund-body.js';
import {
  REFUND_STATES,
  type RefundRepository,
  type RefundState,
  type StoredRefund,
} from '../core/ports/refund-repository.js';
import { CliError } from './cli-error.js';
import { operatorName } from './dlq-options.js';
import { parseWhole } from './options.js';
import { printable } from './printable.js';

interface ListFlags {
  readonly state: RefundState | 'all';
  readonly after?: string;
  readonly limit: number;
  readonly json?: boolean;
}

const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;

const EXAMPLES = `
Examples:
  seckill refunds list                     what is due, oldest first
  seckill refunds list --state all --json
  seckill refunds done pi_3MtwBwLkdIwHu7   and pay it then: the keeper will not

Take a refund on BEFORE you pay it by hand, else the keeper may pay it too; pay only after exit code 0.
Exit codes: 0 done, 1 not done (it was refunded before, or there is none), 2 used wrongly.`;

export function refundsCommand(): Command {
  const refunds = new Command('refunds')
    .description('money that is owed back to buyers')
    .addHelpText('after', EXAMPLES);
  refunds
    .command('list')
    .description('one line per refund, oldest first')
    .addOption(new Option('--state <state>', 'where they stand').choices([...REFUND_STATES, 'all']).default('due'))
    .option('--after <paymentId>', 'go on behind this one', parsePaymentId)
    .option('--limit <count>', 'at most so many', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .option('--json', 'one JSON line per refund')
    .action((flags: ListFlags) => run((repository) => list(repository, flags)));
  refunds
    .command('done')
    .description('take a refund on, to pay it by hand')
    .argument('<paymentId>', 'as `refunds list` shows it', parsePaymentId)
    .option('--json', 'print one JSON line')
    .action((paymentId: string, { json }: { json?: boolean }) =>
      run((repository) => takeOn(repository, paymentId, json)),
    );
  return refunds;
}

function parsePaymentId(text: string): string {
  if (!isPaymentId(text)) throw new InvalidArgumentError('must be a payment id, as `refunds list` shows it.');
  return text;
}

async function run(task: (repository: RefundRepository) => Promise<void>): Promise<void> {
  const config = loadConfig(['mysql'], process.env);
  await withOperator(config, createLog('refunds', 'error'), (operator) => task(operator.refunds()));
}

async function list(repository: RefundRepository, { state, after, limit, json }: ListFlags): Promise<void> {
  const page = { max: limit, ...(after === undefined ? {} : { afterPaymentId: after }) };
  const found = await repository.list(state === 'all' ? {} : { state }, page);
  if (!json) console.log(line('payment', 'since', 'state', 'order', 'cents', 'tries', 'reason', 'last error'));
  for (const refund of found) console.log(json ? JSON.stringify(refundBody(refund)) : lineOf(refund));
  if (!json && found.length === limit) console.error(`There may be more: add --after ${found.at(-1)?.paymentId}.`);
}

async function takeOn(repository: RefundRepository, paymentId: string, json: boolean | undefined): Promise<void> {
  const answer = await repository.takeOn(paymentId, operatorName());
  switch (answer.outcome) {
    case 'done': {
      const { amountCents, orderId } = answer.refund;
      if (json) return console.log(JSON.stringify({ outcome: answer.outcome, refund: refundBody(answer.refund) }));
      return console.log(`${amountCents} cents of order ${orderId} are yours to pay back now: the keeper will not.`);
    }
    case 'already_refunded':
      throw new CliError(
        `payment ${paymentId} is refunded, by the provider or by hand: pay nothing.` +
          ` Who took it on: seckill audit list --subject refund:${paymentId}`,
      );
    case 'not_found':
      throw new CliError(`nothing is owed back of payment ${paymentId}.`);
    default:
      assertNever(answer);
  }
}

function lineOf(refund: StoredRefund): string {
  const { paymentId, createdAtMs, state, orderId, amountCents, attempts, reason, lastError } = refund;
  const since = new Date(createdAtMs).toISOString();
  return line(paymentId, since, state, orderId, String(amountCents), String(attempts), reason, lastError ?? '-');
}

const WIDTHS = [32, 24, 8, 19, 10, 5, 18];
const line = (...cells: readonly string[]): string =>
  cells
    .map((cell, index) => printable(cell).padEnd(WIDTHS[index] ?? 0))
    .join('  ')
    .trimEnd();
