import { expect } from 'chai';
import fc from 'fast-check';
import { decodeBatch } from '../../src/core/batch.js';
import { ID, USER_ID } from '../../src/core/ids.js';
import type { Metadata } from '../../src/core/metadata.js';
import { decodeOrderEvents, encodeOrderEvents, type OrderEvent } from '../../src/core/order-event.js';
import { purchaseKey, QUANTITY_MAX, type Purchase } from '../../src/core/purchase.js';
import { readWanted } from '../../src/http/routes/purchase.js';
import { foundOrderBodies, orderPages } from '../../src/operate/orders/order-pages.js';
import { createOrderSearch } from '../../src/mysql/order-search.js';
import { createOrderIdMinter } from '../../src/orders/order-id-minter.js';
import { publishRecorded } from '../../src/orders/outbox-handlers.js';
import { recordBatches } from '../../src/orders/record-batches.js';
import { readCsv } from '../../src/operate/sales/read-csv.js';
import { newSale as saleFields } from '../../src/sales/new-sale.js';
import { batchOf, certainEntry } from '../helpers/sales.js';
import { silentLog } from '../helpers/silent-log.js';
import { metadatas, unitTexts } from '../helpers/texts.js';
import { nextDelivery, PURCHASES, rocketmqWorld, type BrokerWorld } from './broker-worlds.js';
import { mysqlWorld, newSale, type MysqlWorld } from './repository-worlds.js';
import { firstBucket, STORE_WORLDS, type StoreWorld } from './store-worlds.js';

/** Purchases of the batch that passes through all servers. */
const PURCHASES_IN_BATCH = 96;
/** Other suites may receive the message first and leave it. */
const DELIVERED_WITHIN_MS = 90_000;

/** Batches with shortest and longest ids, any metadata, and smallest and largest quantities. */
const purchases: fc.Arbitrary<Purchase[]> = fc.uniqueArray(
  fc.record({
    userId: fc.oneof(fc.stringMatching(USER_ID), fc.constantFrom('!', '~'.repeat(128), '\'"\\', '{}:/*', '007', '-1')),
    requestId: fc.oneof(fc.stringMatching(ID), fc.constantFrom('_', '-'.repeat(64), '1e5')),
    quantity: fc.constantFrom(1, QUANTITY_MAX),
    metadata: metadatas,
  }),
  { minLength: PURCHASES_IN_BATCH, maxLength: PURCHASES_IN_BATCH, selector: ({ userId }) => userId },
);

/** Any title that an operator may give. */
const titles = unitTexts(60).filter((text) => saleFields.shape.title.safeParse(text).data === text);

describe('any text accepted by the API', () => {
  let redis: StoreWorld;
  let mysql: MysqlWorld;
  let broker: BrokerWorld;
  before(async () => {
    redis = await (STORE_WORLDS.find(([name]) => name === 'redis')?.[1] as () => Promise<StoreWorld>)();
    mysql = await mysqlWorld();
    broker = await rocketmqWorld();
  });
  after(() => Promise.all([redis?.close(), mysql?.close(), broker?.close()]));

  it('returns unchanged from Redis, the broker and MySQL, in responses, exports and events', async () => {
    const channel = await broker.purchaseChannel(() => Promise.resolve('no_answer'));
    const source = await broker.source(PURCHASES.topic, PURCHASES.group);
    const minter = createOrderIdMinter(
      { slots: mysql.slots, clock: mysql.clock, log: silentLog },
      { owner: `any-text-${process.pid}`, leaseMs: 60_000 },
    );
    await minter.renew();
    try {
      await fc.assert(
        fc.asyncProperty(purchases, titles, async (some, title) => {
          const wanted = some.map((purchase) => {
            const { quantity, metadata } = purchase;
            const read = readWanted(JSON.stringify({ quantity, metadata }));
            expect(read, 'the api accepts it').to.deep.equal({ quantity, metadata });
            return { ...purchase, ...(read as { metadata: Metadata }) };
          });
          const units = wanted.reduce((sum, { quantity }) => sum + quantity, 0);
          const sale = await mysql.sales.create(newSale({ title, stock: units, limitPerBuyer: QUANTITY_MAX }));
          const batch = batchOf(sale, wanted);

          await redis.sales.warm(sale);
          await redis.sales.setState(sale, 'open');
          expect(await redis.stock.deduct(batch)).to.deep.equal({ outcome: 'deducted' });
          const [pending] = await redis.batches.stalePending(firstBucket(sale), 0, 2);
          expect(pending?.body, 'in its marker').to.equal(batch.body);

          const half = await channel.sendHalf(batch);
          if (typeof half === 'string') throw new Error(half);
          await half.commit();
          const delivery = await nextDelivery(broker, source, batch, DELIVERED_WITHIN_MS);
          await delivery?.ack();
          const decoded = decodeBatch(delivery?.body ?? '');
          if (decoded.outcome !== 'decoded') throw new Error(decoded.detail);
          expect(decoded.batch.purchases, 'at the worker').to.deep.equal(wanted);

          const ports = { repository: mysql.orders, clock: mysql.clock, minter, store: redis.batches };
          const [recorded] = await recordBatches([decoded.batch], ports, { paymentWindowMs: 900_000 });
          if (recorded?.outcome !== 'recorded') throw new Error(recorded?.outcome);
          await redis.batches.markRecorded([{ batch, orders: recorded.orders }]);
          const byKey = new Map(wanted.map((purchase) => [purchaseKey(purchase), purchase]));
          for (const { userId, requestId, quantity } of wanted) {
            const entry = await certainEntry(redis.stock.findRequest(firstBucket(sale), userId, requestId));
            expect(entry, 'as its status').to.include({ state: 'ordered', quantity });
          }

          const search = createOrderSearch(mysql.pool);
          const filter = { saleId: sale.saleId };
          const orders = (await search.page(filter, null, 1000))?.orders ?? [];
          expect(orders.length).to.equal(wanted.length);
          for (const order of orders) {
            const { userId, requestId, quantity, metadata } = order;
            expect({ userId, requestId, quantity, metadata }, 'in MySQL').to.deep.equal(byKey.get(purchaseKey(order)));
          }
          const shown = await foundOrderBodies(orders, search);
          expect(JSON.parse(JSON.stringify(shown)), 'in the answer that the console shows').to.deep.equal(shown);
          expect(new Set(shown.map((order) => order.title)), 'of its sale').to.deep.equal(new Set([title]));

          const textOf = async (format: 'csv' | 'jsonl'): Promise<string> => {
            let text = '';
            for await (const page of orderPages(search, filter, { format, limit: 1000 })) text += page;
            return text;
          };
          const lines = (await textOf('jsonl')).trimEnd().split('\n');
          expect(lines.map((line) => JSON.parse(line) as unknown)).to.deep.equal(shown);
          const csv = readCsv((await textOf('csv')).replace(/^\ufeff/, ''));
          if ('error' in csv) throw new Error(csv.error);
          const [head, ...rows] = csv.rows.map(({ cells }) => cells);
          const at = head?.indexOf('metadata') ?? -1;
          expect(rows.map((cells) => JSON.parse(cells[at] ?? '') as unknown)).to.deep.equal(
            orders.map(({ metadata }) => metadata),
          );

          const events: OrderEvent[] = [];
          const publish = publishRecorded({
            deadlines: { publish: () => Promise.resolve() },
            events: { publish: (list) => Promise.resolve(void events.push(...list)) },
          });
          const { recorded: payloads } = await mysql.outboxOf(batch.batchId);
          await publish(payloads.map((payload, index) => ({ outboxId: `${index}`, createdAtMs: 0, payload })) as never);
          const read = decodeOrderEvents(encodeOrderEvents(events));
          if (read.outcome !== 'decoded') throw new Error(read.detail);
          const noted = Object.fromEntries(orders.map(({ orderId, metadata }) => [orderId, metadata]));
          expect(Object.assign({}, ...read.events.map(({ metadata }) => metadata))).to.deep.equal(noted);
        }),
        { numRuns: 1, endOnFailure: true },
      );
    } finally {
      await minter.close();
    }
  });
});
