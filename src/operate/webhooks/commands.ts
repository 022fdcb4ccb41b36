import { Command, InvalidArgumentError, Option } from 'commander';
import { isDeepStrictEqual } from 'node:util';
import { DELIVERY_STATES, type NewWebhook, type Webhook, type WebhookChanges } from '../../contract/webhooks.js';
import { ORDER_EVENT_TYPES, type OrderEventType } from '../../core/order-event.js';
import { CliError, UsageError } from '../../process/cli-error.js';
import { withConfigured } from '../../process/connections.js';
import { limitOption, operatorName, parseRowNumber } from '../../process/options.js';
import { print, printPage, tableLine } from '../../process/print.js';
import type { DeliveryFilter } from './delivery-store.js';
import { openWebhooks, type WebhookServices } from './services.js';

interface Json {
  readonly json?: boolean;
}
interface Changes extends Json, Partial<NewWebhook> {
  readonly pause?: boolean;
  readonly resume?: boolean;
  readonly newSecret?: true;
}

const EXAMPLES = `
The keeper sends each order event to each endpoint at least once, and the events of an order in their order. docs/events.md
describes the request and its signature. A secret is shown once, when it is made. The previous one signs too for a
day, and until then there is no other new secret.

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
    .addOption(limitOption('events'))
    .action(run(deliveries));
  addOf('resend', 'send events again')
    .argument('<deliveries...>', 'numbers that `webhooks deliveries` shows', parseDeliveries)
    .action(run(resend));
  return webhooks;
}

const parseDelivery = parseRowNumber('webhooks deliveries');
const parseDeliveries = (text: string, before: string[] = []): string[] => [...before, parseDelivery(text)];

function parseEvents(text: string): OrderEventType[] {
  const words = new Set(text.split(','));
  const types = ORDER_EVENT_TYPES.filter((type) => words.has(type));
  if (types.length === words.size) return types;
  throw new InvalidArgumentError(`must be one or more of ${ORDER_EVENT_TYPES.join(',')}.`);
}

const run =
  <A extends unknown[]>(task: (services: WebhookServices, ...args: A) => Promise<void>) =>
  (...args: A): Promise<void> =>
    withConfigured('webhooks', ['mysql', 'redis', 'keeper'], (connections) => task(openWebhooks(connections), ...args));

const endpointLine = tableLine(8, 8, 24, 48, 20);

async function list({ webhooks }: WebhookServices, flags: Json): Promise<void> {
  printPage(await webhooks.list(), flags, {
    header: endpointLine('endpoint', 'state', 'failing since', 'url', 'last error', 'events'),
    line: ({ endpointId, state, failingSince, url, lastError, events }) =>
      endpointLine(endpointId, state, failingSince ?? '-', url, lastError ?? '-', events.join()),
    body: (webhook) => webhook,
  });
}

async function create(services: WebhookServices, { json, ...wanted }: NewWebhook & Json): Promise<void> {
  checkUrl(services, wanted.url);
  printChanged(await services.webhooks.create(wanted, operatorName()), json);
}

async function edit(services: WebhookServices, endpointId: string, flags: Changes): Promise<void> {
  const { pause, resume, json, ...given } = flags;
  const state = pause ? 'paused' : resume ? 'active' : null;
  const changes: WebhookChanges = state === null ? given : { ...given, state };
  if (Object.keys(changes).length === 0) throw new UsageError('give at least one change.');
  if (given.url !== undefined) checkUrl(services, given.url);
  const before = (await services.webhooks.list()).find((one) => one.endpointId === endpointId);
  const edited = await services.webhooks.edit(endpointId, changes, operatorName());
  printChanged(edited ?? throwNoEndpoint(endpointId), json, isDeepStrictEqual(before, edited));
}

function checkUrl({ flawOfWebhook }: WebhookServices, url: string): void {
  const flaw = flawOfWebhook(url);
  if (flaw !== null) throw new UsageError(`--url ${flaw}.`);
}

function printChanged(changed: Webhook | string, json: boolean | undefined, isSame = false): void {
  if (typeof changed === 'string') throw new CliError(changed);
  const { endpointId, state, secret, previousSecretUntil: until } = changed;
  if (json) return print(JSON.stringify(changed));
  print(`endpoint ${endpointId} is ${state}${isSame ? '; nothing changed' : ''}.`);
  if (secret !== undefined) print(`secret: ${secret}`);
  if (until !== null) print(`The previous secret signs too until ${until}.`);
}

async function remove({ webhooks }: WebhookServices, endpointId: string, { json }: Json): Promise<void> {
  if (!(await webhooks.remove(endpointId, operatorName()))) throwNoEndpoint(endpointId);
  print(json ? JSON.stringify({ outcome: 'removed', endpointId }) : `endpoint ${endpointId} is removed.`);
}

async function test({ testWebhook }: WebhookServices, endpointId: string, { json }: Json): Promise<void> {
  const sent = (await testWebhook(endpointId)) ?? throwNoEndpoint(endpointId);
  print(json ? JSON.stringify(sent) : `${sent.outcome}: ${sent.detail}`);
  if (sent.outcome !== 'delivered') process.exitCode = 1;
}

const deliveryLine = tableLine(10, 10, 24, 22, 20, 8, 20);

async function deliveries(
  { webhookDeliveries }: WebhookServices,
  endpointId: string,
  flags: DeliveryFilter & Json,
): Promise<void> {
  printPage(await webhookDeliveries.list(endpointId, flags), flags, {
    header: deliveryLine('delivery', 'state', 'at', 'type', 'order', 'attempts', 'last error', 'next try'),
    line: ({ deliveryId, state, at, type, orderId, attempts, lastError, nextTry }) =>
      deliveryLine(deliveryId, state, at, type, orderId, String(attempts), lastError ?? '-', nextTry ?? '-'),
    body: (delivery) => delivery,
    next: ({ deliveryId }) => `--before ${deliveryId}`,
  });
}

async function resend(services: WebhookServices, endpointId: string, ids: string[], { json }: Json): Promise<void> {
  const resent = await services.webhookDeliveries.resend(endpointId, ids, operatorName());
  if (resent === 0) throw new CliError(`endpoint ${endpointId} has no such delivery.`);
  print(json ? JSON.stringify({ resent }) : `${resent} events are sent again.`);
}

function throwNoEndpoint(endpointId: string): never {
  throw new CliError(`there is no endpoint ${endpointId}.`);
}
