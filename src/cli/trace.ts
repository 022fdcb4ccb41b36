import { Command, InvalidArgumentError } from 'commander';
import { withOperator } from '../programs/operator.js';
import { loadConfig } from '../core/config/load.js';
import { isId, isSaleId } from '../core/ids.js';
import { traceBody } from '../http/trace-body.js';
import { createLog } from '../programs/telemetry.js';
import type { PurchaseTrace } from '../recovery/trace/trace-purchase.js';
import { CliError } from './cli-error.js';
import { DEFAULT_CLUSTER } from '../rocketmq/admin/broker-state.js';
import { printable } from './printable.js';
import { createTraceBroker } from '../rocketmq/admin/trace-broker.js';

interface TraceFlags {
  readonly sale?: string;
  readonly user?: string;
  readonly cluster: string;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  seckill trace order-1 --sale 7 --user alice
  seckill trace 431234567890123456            an order
  seckill trace x9QmT0yq4cM2nUo1bWv8kA        a batch
  seckill trace -- -of-a-client               a request id that begins with -

Reads Redis, MySQL and, with NAMESRV_ADDR, the broker; changes nothing. No store keeps check-backs, deliveries and the
time of settle. Without --user an id that several buyers used shows all of them, and one that nobody holds any more is
looked for in the whole table of orders, which takes a while. Exit codes: 0 found, 1 not.`;

export function traceCommand(): Command {
  return new Command('trace')
    .description('the whole life of one purchase, from what Redis, MySQL and the broker have of it')
    .argument('<id>', 'request id (Idempotency-Key), batch id or order id', parseId)
    .option('--sale <saleId>', 'of this sale only', parseSaleId)
    .option('--user <userId>', 'of this buyer only', parseId)
    .option('--cluster <name>', 'broker cluster behind NAMESRV_ADDR', DEFAULT_CLUSTER)
    .option('--json', 'one JSON line per purchase')
    .addHelpText('after', EXAMPLES)
    .action(trace);
}

async function trace(id: string, { sale, user, cluster, json }: TraceFlags): Promise<void> {
  const env = process.env;
  const config = loadConfig(['mysql', 'redis', 'keeper'], env);
  const broker = env.NAMESRV_ADDR ? createTraceBroker(env.NAMESRV_ADDR, cluster) : null;
  const query = {
    id,
    ...(sale === undefined ? {} : { saleId: sale }),
    ...(user === undefined ? {} : { userId: user }),
  };
  const answer = await withOperator(config, createLog('trace', 'error'), async (operator) =>
    (await operator.trace(broker)).trace(query),
  );
  if (answer.outcome === 'not_found') throw new CliError(answer.why);
  for (const one of answer.traces) {
    if (json) console.log(JSON.stringify(traceBody(one)));
    else printTrace(one);
  }
  if (answer.more) console.error('There are more: narrow it with --user or --sale.');
}

function printTrace({ request: { userId, saleId, requestId }, standing, steps }: PurchaseTrace): void {
  console.log(`Request ${requestId} of buyer ${userId} in sale ${saleId}`);
  for (const { atMs, source, what, detail } of steps) {
    const when = atMs === null ? 'now' : new Date(atMs).toISOString();
    console.log(`  ${when.padEnd(24)}  ${source.padEnd(6)}  ${what.padEnd(16)}  ${printable(detail)}`);
  }
  console.log(`${standing.sentence}\n`);
}

function parseId(text: string): string {
  if (!isId(text)) throw new InvalidArgumentError('must be an id: letters, digits, _ and -, up to 64.');
  return text;
}

function parseSaleId(text: string): string {
  if (!isSaleId(text)) throw new InvalidArgumentError('must be a whole number.');
  return text;
}
