import { Command } from 'commander';
import { openTrace } from '../programs/operator.js';
import { withConnections } from '../process/connections.js';
import { loadConfig } from '../core/config/load.js';
import { traceBody } from '../http/routes/traces.js';
import { createLog } from '../process/telemetry.js';
import type { PurchaseTrace } from '../recovery/trace/trace-purchase.js';
import { CliError } from '../process/cli-error.js';
import { clusterOption, parseId, parseSaleId, parseUserId } from '../process/options.js';
import { inLine, isoTime, print, printError, tableLine } from '../process/print.js';
import { createTraceBroker } from '../rocketmq/admin/trace-broker.js';
import { brokerAccessOf } from '../rocketmq/credentials.js';
import { withoutUndefined } from '../core/without-undefined.js';

interface TraceFlags {
  readonly sale?: string;
  readonly user?: string;
  readonly cluster: string | null;
  readonly json?: boolean;
}

const EXAMPLES = `
Prints one line per step: when, which store says so, what happened; then where the purchase stands and what comes next.
It reads Redis, MySQL and, with NAMESRV_ADDR, the broker, and changes nothing.

Examples:
  seckill trace order-1 --sale 7 --user alice
  seckill trace 431234567890123456            an order
  seckill trace x9QmT0yq4cM2nUo1bWv8kA        a batch: purchases that were stored together
  seckill trace 4bf92f3577b34da6a3ce929d0e0e4736   a trace id: what a caller named in traceparent, or an answer in Trace-Id
  seckill trace -- -of-a-client               a request id that begins with -

An Idempotency-Key is unique per buyer and sale only: without --user all purchases with it are shown. An id that no store
holds any more is searched in the whole table of orders, which takes a while. The Trace-Id of a purchase whose caller named no trace
stands for its batch: --user picks the purchase. A refusal leaves nothing; its Trace-Id is in the access log, where there is one.
Exit codes: 0 found, 1 not found or a server is away, 2 used wrongly.`;

export function traceCommand(): Command {
  return new Command('trace')
    .description('everything that happened to one purchase, and what comes next')
    .argument('<id>', 'request id (Idempotency-Key), batch id, order id or trace id', parseId)
    .option('--sale <saleId>', 'only of this sale', parseSaleId)
    .option('--user <userId>', 'only of this buyer', parseUserId)
    .addOption(clusterOption())
    .option('--json', 'one JSON line per purchase')
    .addHelpText('after', EXAMPLES)
    .action(trace);
}

async function trace(id: string, { sale, user, cluster, json }: TraceFlags): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'keeper', 'repair', 'brokerAccess'], process.env);
  const { namesrv } = config.repair;
  const broker = namesrv === '' ? null : createTraceBroker(namesrv, brokerAccessOf(config.brokerAccess), { cluster });
  const query = { id, ...withoutUndefined({ saleId: sale, userId: user }) };
  const answer = await withConnections(config, createLog('trace', 'error'), async (connections) =>
    (await openTrace(connections, broker)).trace(query),
  );
  if (answer.outcome === 'not_found') throw new CliError(answer.why);
  for (const one of answer.traces) {
    if (json) print(JSON.stringify(traceBody(one)));
    else printTrace(one);
  }
  if (answer.more) printError('There are more: narrow it with --user or --sale.');
}

const stepLine = tableLine(24, 6, 16);

function printTrace({ request: { userId, saleId, requestId }, traceId, standing, steps }: PurchaseTrace): void {
  print(
    inLine(`Request ${requestId} of buyer ${userId} in sale ${saleId}${traceId === null ? '' : `, trace ${traceId}`}`),
  );
  for (const { atMs, source, what, detail } of steps) {
    print(`  ${stepLine(atMs === null ? 'now' : isoTime(atMs), source, what, detail)}`);
  }
  print(`${inLine(standing.sentence)}\n`);
}
