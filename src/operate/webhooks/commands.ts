import { Command, InvalidArgumentError, Option } from 'commander';
import { loadConfig } from '../../core/config/load.js';
import { ORDER_EVENT_TYPES, type OrderEventType } from '../../core/order-event.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { withConnections } from '../../process/connections.js';
import { operatorName, parseRowNumber, parseWhole } from '../../process/options.js';
import { print, printError, tableLine } from '../../process/print.js';
import { createLog } from '../../process/telemetry.js';
import { DELIVERY_STATES, type DeliveryFilter } from './delivery-store.js';
import type { WebhookEndpoint } from './endpoint-store.js';
import { deliveryBody, TOO_MANY, webhookBody } from './routes.js';
import { openWebhooks, type WebhookServices } from './services.js';

interface Json {
  readonly json?: boolean;
}
interface EditFlags extends Json {
  readonly url?: string;
  readonly events?: readonly OrderEventType[];
  readonly pause?: boolean;
  readonly resume?: boolean;
  readonly newSecret?: true;
}

const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;

const EXAMPLES = `
The keeper sends each order event to each endpoint at least once, and the events of an order in their order. docs/events.md
describes the request and its signature. A secret is shown once, when it is made.

Examples:
  seckill webhooks create --url https://shop.example/events --events order.paid,order.refunded
  seckill webhooks test 3
  seckill webhooks list
  seckill webhooks edit 3 --new-secret
  seckill webhooks edit 3 --resume                  after the receiver works again
  seckill webhooks deliveries 3 --state due --json
  seckill webhooks resend 3 1201 1202

Reads and writes MySQL; \`test\` calls the endpoint.
Exit codes: 0 done, 1 not done (no such endpoint or delivery, not delivered, MySQL is down), 2 wrong usage.`;

export function webhooksCommand(): Command {
  const webhooks = new Command('webhooks')
    .description('send order events to HTTP endpoints: create, edit, remove, test and list endpoints')
    .addHelpText('after', EXAMPLES);
  /** Adds a command about one endpoint. */
  const add = (name: string, description: string): Command =>
    webhooks
      .command(name)
      .description(description)
      .argument('<endpoint>', 'number that `webhooks list` shows', parseRowNumber('webhooks list'))
      .option('--json', 'print JSON lines');
  const deliveryId = parseRowNumber('webhooks deliveries');
  webhooks
    .command('list')
    .description('print one line per endpoint')
    .option('--json', 'one JSON line per endpoint')
    .action((flags: Json) => run((services) => list(services, flags)));
  webhooks
    .command('create')
    .description('create an endpoint and print its secret')
    .requiredOption('--url <url>', 'where events are sent: https, at a public address')
    .option('--events <types>', 'only these types, separated by commas', parseEvents, [...ORDER_EVENT_TYPES])
    .option('--json', 'print one JSON line')
    .action((flags: Required<EditFlags>) => run((services) => create(services, flags)));
  add('edit', 'change, pause or resume an endpoint, or replace its secret')
    .option('--url <url>', 'where events are sent')
    .option('--events <types>', 'only these types, separated by commas', parseEvents)
    .addOption(new Option('--pause', 'send nothing until it is resumed').conflicts('resume'))
    .option('--resume', 'send again, at once')
    .option('--new-secret', 'replace the secret and print it')
    .action((endpointId: string, flags: EditFlags) => run((services) => edit(services, endpointId, flags)));
  add('remove', 'remove an endpoint; it gets no more events').action((endpointId: string, { json }: Json) =>
    run(async (services) => {
      if (!(await services.webhooks.remove(endpointId, operatorName()))) throw noEndpoint(endpointId);
      print(json ? JSON.stringify({ outcome: 'removed', endpointId }) : `endpoint ${endpointId} is removed.`);
    }),
  );
  add('test', 'send a test event now').action((endpointId: string, { json }: Json) =>
    run(async (services) => {
      const sent = await services.testWebhook(endpointId);
      if (sent === null) throw noEndpoint(endpointId);
      print(json ? JSON.stringify(sent) : `${sent.outcome}: ${sent.detail}`);
      if (sent.outcome !== 'delivered') process.exitCode = 1;
    }),
  );
  add('deliveries', 'print one line per event of an endpoint, newest first')
    .addOption(new Option('--state <state>', 'only events in this state').choices([...DELIVERY_STATES]))
    .option('--before <delivery>', 'only events before this one', deliveryId)
    .option('--limit <count>', 'maximum number of events', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .action((endpointId: string, flags: DeliveryFilter & Json) =>
      run((services) => listDeliveries(services, endpointId, flags)),
    );
  add('resend', 'send events again')
    .argument('<deliveries...>', 'numbers that `webhooks deliveries` shows', (text: string, before?: string[]) => [
      ...(before ?? []),
      deliveryId(text),
    ])
    .action((endpointId: string, deliveryIds: readonly string[], { json }: Json) =>
      run(async ({ webhookDeliveries }) => {
        const resent = await webhookDeliveries.resend(endpointId, deliveryIds, operatorName());
        if (resent === 0) throw new CliError(`endpoint ${endpointId} has no such delivery.`);
        print(json ? JSON.stringify({ resent }) : `${resent} events are sent again.`);
      }),
    );
  return webhooks;
}

function parseEvents(text: string): OrderEventType[] {
  const words = [...new Set(text.split(','))];
  const types = ORDER_EVENT_TYPES.filter((type) => words.includes(type));
  if (types.length === words.length) return types;
  throw new InvalidArgumentError(`must be some of ${ORDER_EVENT_TYPES.join(',')}.`);
}

async function run(task: (services: WebhookServices) => Promise<void>): Promise<void> {
  const config = loadConfig(['mysql', 'redis', 'keeper'], process.env);
  await withConnections(config, createLog('webhooks', 'error'), (connections) => task(openWebhooks(connections)));
}

const endpointLine = tableLine(8, 8, 24, 48, 20);

async function list({ webhooks }: WebhookServices, { json }: Json): Promise<void> {
  if (!json) print(endpointLine('endpoint', 'state', 'failing since', 'url', 'last error', 'events'));
  for (const body of (await webhooks.list()).map((one) => webhookBody(one))) {
    const { endpointId, state, failingSince, url, lastError, events } = body;
    const cells = [endpointId, state, failingSince ?? '-', url, lastError ?? '-', events.join(',')];
    print(json ? JSON.stringify(body) : endpointLine(...cells));
  }
}

async function create({ webhooks, flawOfWebhook }: WebhookServices, flags: Required<EditFlags>): Promise<void> {
  const { url, events, json } = flags;
  const flaw = flawOfWebhook(url);
  if (flaw !== null) throw new UsageError(`--url ${flaw}.`);
  const made = await webhooks.create({ url, events }, operatorName());
  if (made === null) throw new CliError(TOO_MANY);
  printChanged(made, true, json);
}

async function edit({ webhooks, flawOfWebhook }: WebhookServices, endpointId: string, flags: EditFlags): Promise<void> {
  const { url, events, pause, resume, newSecret, json } = flags;
  const changes = { url, events, newSecret, state: pause ? 'paused' : resume ? 'active' : undefined } as const;
  if (Object.keys(withoutUndefined(changes)).length === 0) throw new UsageError('give at least one change.');
  const flaw = url === undefined ? null : flawOfWebhook(url);
  if (flaw !== null) throw new UsageError(`--url ${flaw}.`);
  const edited = await webhooks.edit(endpointId, changes, operatorName());
  if (edited === null) throw noEndpoint(endpointId);
  printChanged(edited, newSecret, json);
}

function printChanged(endpoint: WebhookEndpoint, withSecret: boolean | undefined, json: boolean | undefined): void {
  const body = webhookBody(endpoint, withSecret);
  if (json) return print(JSON.stringify(body));
  print(`endpoint ${body.endpointId} is ${body.state}.`);
  if (body.secret !== undefined) print(`secret: ${body.secret}`);
}

const deliveryLine = tableLine(10, 10, 24, 22, 20, 8, 20);

async function listDeliveries(
  { webhookDeliveries }: WebhookServices,
  endpointId: string,
  { json, ...filter }: DeliveryFilter & Json,
): Promise<void> {
  const found = await webhookDeliveries.list(endpointId, filter);
  if (!json) print(deliveryLine('delivery', 'state', 'at', 'type', 'order', 'attempts', 'last error', 'next try'));
  for (const body of found.map(deliveryBody)) {
    const { deliveryId, state, at, type, orderId, attempts, lastError, nextTry } = body;
    const cells = [deliveryId, state, at, type, orderId, String(attempts), lastError ?? '-', nextTry ?? '-'];
    print(json ? JSON.stringify(body) : deliveryLine(...cells));
  }
  if (!json && found.length === filter.limit) printError(`For more, add --before ${found.at(-1)?.deliveryId}.`);
}

const noEndpoint = (endpointId: string): CliError => new CliError(`there is no endpoint ${endpointId}.`);
