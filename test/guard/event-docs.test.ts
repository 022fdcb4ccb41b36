import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import {
  decodeOrderEvents,
  encodeOrderEvents,
  EVENTS_PER_MESSAGE_MAX,
  ORDER_EVENT_TYPES,
  type OrderEvent,
} from '../../src/core/order-event.js';
import { ORDER_TRANSITIONS } from '../../src/core/order.js';
import { ORDERS_PER_MESSAGE_MAX } from '../../src/core/payment-deadline.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import { readTopicLists, withGroup } from '../../src/rocketmq/admin/topic-lists.js';

const page = readFileSync(new URL('../../docs/events.md', import.meta.url), 'utf8');
const example = readFileSync(new URL('../../examples/order-events/README.md', import.meta.url), 'utf8');
const program = readFileSync(new URL('../../examples/order-events/main.mjs', import.meta.url), 'utf8');
/** The first cells of the rows of the table whose heading begins like this. */
const firstCells = (heading: string): string[] => {
  const table = page.slice(page.indexOf(`| ${heading} |`)).split('\n\n')[0] ?? '';
  return [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, cell]) => cell as string);
};

describe('guard: docs/events.md says what the code publishes', () => {
  const [body = ''] = [...(/```json\n([\s\S]*?)```/.exec(page)?.slice(1) ?? [])];

  it('its body is one that the code reads, and writes with the same fields', () => {
    const decoded = decodeOrderEvents(body);
    if (decoded.outcome !== 'decoded') throw new Error(decoded.detail);
    expect(JSON.parse(encodeOrderEvents(decoded.events))).to.deep.equal(JSON.parse(body));
    const line = /```json\n([\s\S]*?)```/.exec(example)?.[1] ?? '';
    expect(decodeOrderEvents(`{"v":1,"events":[${line}]}`).outcome).to.equal('decoded');
  });

  it('its tables have every field and every type, and no other', () => {
    const event: Required<OrderEvent> = {
      eventId: 'e',
      type: 'order.paid',
      saleId: '7',
      orders: ['1'],
      atMs: 1,
      metadata: { 1: { a: 'b' } },
    };
    const { v, events } = JSON.parse(encodeOrderEvents([event])) as { v: number; events: object[] };
    expect(v).to.equal(1);
    expect(firstCells('field')).to.have.members(['v', ...Object.keys(events[0] as object)]);
    expect(firstCells('type')).to.have.members([...ORDER_EVENT_TYPES]);
    const ends = ORDER_TRANSITIONS.pending_payment.map((state) => `\`order.${state}\``).join(', ');
    expect(page).to.include(`\`pending_payment\` | ${ends} |`);
  });

  it('its numbers and names are those of the code', () => {
    expect(page).to.include(`up to ${EVENTS_PER_MESSAGE_MAX} events of one sale`);
    expect(page).to.include(`1 to ${ORDERS_PER_MESSAGE_MAX.toLocaleString('en')} orders`);
    expect(page).to.include(`\`${TOPICS.orderEvent}\``);
    expect(program).to.include(`TOPIC = '${TOPICS.orderEvent}'`);
    const own = withGroup(readTopicLists(), 'shop-orders').groups.at(-1);
    expect(page).to.include(`After ${own?.retryMaxTimes} retries`);
    expect(Object.values(GROUPS)).not.to.include(own?.groupName);
  });
});
