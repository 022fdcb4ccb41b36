import { Command, InvalidArgumentError, Option } from 'commander';
import { DELIVERY_STATES, type Webhook } from '../../contract/webhooks.js';
import { loadConfig } from '../../core/config/load.js';
import { ORDER_EVENT_TYPES, type OrderEventType } from '../../core/order-event.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { withConnections } from '../../process/connections.js';
import { operatorName, parseRowNumber, parseWhole } from '../../process/options.js';
import { print, printError, tableLine } from '../../process/print.js';
import { createLog } from '../../process/telemetry.js';
import type { DeliveryFilter } from './delivery-store.js';
import { TOO_MANY } from './routes.js';
import { openWebhooks, type WebhookServices } from './services.js';

interface Json {
  readonly json?: boolean;
}
interface Flags extends Json {
  readonly url?: string;
  readonly events?: OrderEventType[];
  readonly pause?: boolean;
  readonly resume?: boolean;
  readonly newSecret?: true;
}

const LIST_DEFAULT = 50;
const LIST_MAX = 10_000;

const EXAMPLES = `
The keeper sends each order event to each endpoint at least once, and the events of an order in their order. docs/events.md
describes the request and its signature. A secret is shown once, when it is made. The previous one signs too for a day.

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
  const add = (name: string, description: string): Command =>
    webhooks.command(name).description(description).option('--json', 'print JSON lines');
  /** Adds a command about one endpoint. */
  const addOf = (name: string, description: string): Command =>
    add(name, description).argument('<endpoint>', 'number that `webhooks list` shows', parseRowNumber('webhooks list'));
  add('list', 'print one line per endpoint').action(run(list));
  add('create', 'create an endpoint and print its secret')
    .requiredOption('--url <url>', 'where events are sent: https, at a public address')
    .option('--events <types>', 'only these types, separated by commas', parseEvents, [...ORDER_EVENT_TYPES])
    .action(run(create));
  addOf('edit', 'change, pause or resume an endpoint, or replace its secret')
    .option('--url <url>', 'where events are sent')
    .option('--events <types>', 'only these types, separated by commas', parseEvents)
    .addOption(new Option('--pause', 'send nothing until it is resumed').conflicts('resume'))
    .option('--resume', 'send again, at once')
    .option('--new-secret', 'replace the secret and print it; the previous one signs too for a day')
    .action(run(edit));
  addOf('remove', 'remove an endpoint; it gets no more events').action(run(remove));
  addOf('test', 'send a test event now').action(run(test));
  addOf('deliveries', 'print one line per event of an endpoint, newest first')
    .addOption(new Option('--state <state>', 'only events in this state').choices([...DELIVERY_STATES]))
    .option('--before <delivery>', 'only events before this one', parseDelivery)
    .option('--limit <count>', 'maximum number of events', parseWhole(1, LIST_MAX), LIST_DEFAULT)
    .action(run(deliveries));
  addOf('resend', 'send events again')
    .argument('<deliveries...>', 'numbers that `webhooks deliveries` shows', parseDeliveries)
    .action(run(resend));
  return webhooks;
}

const parseDelivery = parseRowNumber('webhooks deliveries');
const parseDeliveries = (text: string, before: string[] = []): string[] => [...before, parseDelivery(text)];

function parseEvents(text: string): OrderEventType[] {
  const words = [...new Set(text.split(','))];
  const types = ORDER_EVENT_TYPES.filter((type) => words.includes(type));
  if (types.length === words.length) return types;
  throw new InvalidArgumentError(`must be some of ${ORDER_EVENT_TYPES.join(',')}.`);
}

const run =
  <A extends unknown[]>(task: (services: WebhookServices, ...args: A) => Promise<void>) =>
  async (...args: A): Promise<void> => {
    const config = loadConfig(['mysql', 'redis', 'keeper'], process.env);
    const log = createLog('webhooks', 'error');
    await withConnections(config, log, (connections) => task(openWebhooks(connections), ...args));
  };

const printOne = (json: boolean | undefined, body: object, line: string): void =>
  print(json ? JSON.stringify(body) : line);

/** Prints a table with a column per field, or a JSON line per row. */
function printRows<F extends string, T extends Readonly<Record<F, unknown>>>(
  json: boolean | undefined,
  rows: readonly T[],
  fields: readonly F[],
  line: ReturnType<typeof tableLine>,
): void {
  const title = (field: F): string => field.replace(/Id$/, '').replace(/[A-Z]/g, (at) => ` ${at.toLowerCase()}`);
  if (!json) print(line(...fields.map(title)));
  for (const row of rows) printOne(json, row, line(...fields.map((field) => String(row[field] ?? '-'))));
}

async function list({ webhooks }: WebhookServices, { json }: Json): Promise<void> {
  const fields = ['endpointId', 'state', 'failingSince', 'url', 'lastError', 'events'] as const;
  printRows(json, await webhooks.list(), fields, tableLine(8, 8, 24, 48, 20));
}

async function create({ webhooks, flawOfWebhook }: WebhookServices, flags: Required<Flags>): Promise<void> {
  const { url, events, json } = flags;
  const flaw = flawOfWebhook(url);
  if (flaw !== null) throw new UsageError(`--url ${flaw}.`);
  const made = await webhooks.create({ url, events }, operatorName());
  if (made === null) throw new CliError(TOO_MANY);
  printChanged(made, json);
}

async function edit({ webhooks, flawOfWebhook }: WebhookServices, endpointId: string, flags: Flags): Promise<void> {
  const { url, events, pause, resume, newSecret, json } = flags;
  const changes = { url, events, newSecret, state: pause ? 'paused' : resume ? 'active' : undefined } as const;
  if (Object.keys(withoutUndefined(changes)).length === 0) throw new UsageError('give at least one change.');
  const flaw = url === undefined ? null : flawOfWebhook(url);
  if (flaw !== null) throw new UsageError(`--url ${flaw}.`);
  printChanged((await webhooks.edit(endpointId, changes, operatorName())) ?? throwNoEndpoint(endpointId), json);
}

function printChanged(webhook: Webhook, json: boolean | undefined): void {
  const { endpointId, state, secret, previousSecretUntil } = webhook;
  const lines = [`endpoint ${endpointId} is ${state}.`];
  if (secret !== undefined) lines.push(`secret: ${secret}`);
  if (previousSecretUntil !== null) lines.push(`The previous secret signs too until ${previousSecretUntil}.`);
  printOne(json, webhook, lines.join('\n'));
}

async function remove({ webhooks }: WebhookServices, endpointId: string, { json }: Json): Promise<void> {
  if (!(await webhooks.remove(endpointId, operatorName()))) throwNoEndpoint(endpointId);
  printOne(json, { outcome: 'removed', endpointId }, `endpoint ${endpointId} is removed.`);
}

async function test({ testWebhook }: WebhookServices, endpointId: string, { json }: Json): Promise<void> {
  const sent = (await testWebhook(endpointId)) ?? throwNoEndpoint(endpointId);
  printOne(json, sent, `${sent.outcome}: ${sent.detail}`);
  if (sent.outcome !== 'delivered') process.exitCode = 1;
}

async function deliveries(
  { webhookDeliveries }: WebhookServices,
  endpointId: string,
  { json, ...filter }: DeliveryFilter & Json,
): Promise<void> {
  const found = await webhookDeliveries.list(endpointId, filter);
  const fields = ['deliveryId', 'state', 'at', 'type', 'orderId', 'attempts', 'lastError', 'nextTry'] as const;
  printRows(json, found, fields, tableLine(10, 10, 24, 22, 20, 8, 20));
  if (!json && found.length === filter.limit) printError(`For more, add --before ${found.at(-1)?.deliveryId}.`);
}

async function resend(services: WebhookServices, endpointId: string, ids: string[], { json }: Json): Promise<void> {
  const resent = await services.webhookDeliveries.resend(endpointId, ids, operatorName());
  if (resent === 0) throw new CliError(`endpoint ${endpointId} has no such delivery.`);
  printOne(json, { resent }, `${resent} events are sent again.`);
}

function throwNoEndpoint(endpointId: string): never {
  throw new CliError(`there is no endpoint ${endpointId}.`);
}
