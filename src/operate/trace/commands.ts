import { Command } from 'commander';
import { withConfigured } from '../../process/connections.js';
import { CliError } from '../../process/cli-error.js';
import { clusterOption, parseId, parseSaleId, parseUserId } from '../../process/options.js';
import { inLine, isoTime, print, printError, tableLine } from '../../process/print.js';
import { createTraceBroker } from '../../rocketmq/admin/trace-broker.js';
import { brokerAccessOf } from '../../rocketmq/credentials.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { traceBody } from './routes.js';
import { openTrace } from './services.js';
import type { PurchaseTrace } from './trace-purchase.js';

interface TraceFlags {
  readonly sale?: string;
  readonly user?: string;
  readonly cluster: string | null;
  readonly json?: boolean;
}

const EXAMPLES = `
Prints one line per step: the time, the store that recorded it, and the event. Then it prints the state of the purchase and the
next step. It reads Redis, MySQL and, with NAMESRV_ADDR, the broker, and changes nothing.

Examples:
  seckill trace order-1 --sale 7 --user alice
  seckill trace 431234567890123456            an order
  seckill trace x9QmT0yq4cM2nUo1bWv8kA        a batch of purchases
  seckill trace 4bf92f3577b34da6a3ce929d0e0e4736   a trace id, from traceparent or Trace-Id
  seckill trace -- -of-a-client               a request id that begins with -

An Idempotency-Key is unique only per buyer and sale, so without --user the command shows all purchases with it. If no store
finds an id at once, the command searches the whole table of orders, which takes a while. Without a traceparent of the caller,
a Trace-Id belongs to a whole batch; use --user to pick the purchase. A refused purchase leaves at most its half
message, and a line in the access log if that is on.
Exit codes: 0 found, 1 not found or a server is down, 2 wrong usage.`;

export function traceCommand(): Command {
  return new Command('trace')
    .description('show everything that happened to one purchase, and the next step')
    .argument('<id>', 'request id (Idempotency-Key), batch id, order id or trace id', parseId)
    .option('--sale <saleId>', 'only purchases of this sale', parseSaleId)
    .option('--user <userId>', 'only purchases of this buyer', parseUserId)
    .addOption(clusterOption())
    .option('--json', 'one JSON line per purchase')
    .addHelpText('after', EXAMPLES)
    .action(trace);
}

async function trace(id: string, { sale, user, cluster, json }: TraceFlags): Promise<void> {
  const sections = ['mysql', 'redis', 'keeper', 'repair', 'brokerAccess'] as const;
  const answer = await withConfigured('trace', sections, async (connections) => {
    const { repair, brokerAccess } = connections.config;
    const access = brokerAccessOf(brokerAccess);
    const broker = repair.namesrv === '' ? null : createTraceBroker(repair.namesrv, access, { cluster });
    const { trace } = await openTrace(connections, broker);
    return trace.trace({ id, ...withoutUndefined({ saleId: sale, userId: user }) });
  });
  if (answer.outcome === 'not_found') throw new CliError(answer.why);
  for (const one of answer.traces) {
    if (json) print(JSON.stringify(traceBody(one)));
    else printTrace(one);
  }
  if (answer.more) printError('There are more. Narrow the search with --user or --sale.');
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
