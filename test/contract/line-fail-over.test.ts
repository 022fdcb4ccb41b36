import { expect } from 'chai';
import { queueRules } from '../../src/admission/queue/queue-rules.js';
import { WaitingRooms, type TicketAnswer } from '../../src/admission/queue/waiting-rooms.js';
import { Seals } from '../../src/admission/sign/seals.js';
import { readKeyring } from '../../src/core/hmac.js';
import type { LineStore } from '../../src/core/ports/line-store.js';
import { systemClock } from '../../src/process/system-clock.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createLineStore } from '../../src/redis/line-store.js';
import { redisServerOrSkip, startPrivateRedis, type PrivateRedis } from '../helpers/private-redis.js';
import { freshSaleId } from '../helpers/sales.js';
import { silentLog } from '../helpers/silent-log.js';

describe('contract: a waiting room whose Redis dies', () => {
  const opened: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const one of opened.splice(0).toReversed()) await one.close();
  });
  const start = async (binary: string, args: string[] = []): Promise<PrivateRedis> => {
    const server = await startPrivateRedis(binary, { args });
    opened.push({ close: () => server.stop() });
    return server;
  };
  const connect = async ({ url }: PrivateRedis): Promise<RedisConnection> => {
    const connection = await connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
    opened.push(connection);
    return connection;
  };

  it('keeps every place that a ticket holds when a replica without the last writes takes over', async function () {
    const binary = redisServerOrSkip(this);
    const master = await start(binary);
    const replicaOf = ['--replicaof', '127.0.0.1', String(master.port), '--repl-diskless-sync-delay', '0'];
    const [first, second] = [await connect(master), await connect(await start(binary, replicaOf))];
    let lines = createLineStore(first);
    const store: LineStore = {
      read: (...args) => lines.read(...args),
      take: (...args) => lines.take(...args),
      look: (...args) => lines.look(...args),
      steer: (...args) => lines.steer(...args),
    };
    const rules = queueRules.parse({ mode: 'on', admitPerSecond: 0 });
    const seals = new Seals(readKeyring('k1:a-secret-for-tickets-that-is-long-enough'));
    const newApi = (): WaitingRooms =>
      new WaitingRooms({
        ...{ rules: () => rules, seals, store, isSoldOut: () => false, clock: systemClock },
        metrics: { moved: () => undefined },
      });
    const sale = { saleId: freshSaleId(), opensAtMs: Date.now() - 1000 };
    const join = (api: WaitingRooms, userId: string) => api.join(sale, { userId, roles: [] });
    const placeOf = (answer: TicketAnswer) => (answer.outcome === 'waiting' ? answer.position : answer.outcome);
    const api = newApi();
    const places = [];
    for (const userId of ['ann', 'bob']) places.push(placeOf(await join(api, userId)));
    expect(await first.redis.wait(1, 10_000), 'the replica has both').to.equal(1);
    await second.redis.replicaof('NO', 'ONE'); // misses all later writes
    const cat = await join(api, 'cat');
    for (const answer of [cat, await join(api, 'dan')]) places.push(placeOf(answer));
    expect(places).to.deep.equal([1, 2, 3, 4]);

    await master.stop();
    lines = createLineStore(second);
    const ticket = (cat as { readonly ticket: string }).ticket;
    expect(placeOf(await newApi().read(sale, { userId: 'cat' }, ticket)), 'at an api that knows nothing').to.equal(3);
    expect(placeOf(await join(api, 'eve')), 'behind the places that the api has seen').to.equal(5);
    for (const [userId, place] of [
      ['ann', 1],
      ['bob', 2],
      ['cat', 3],
      ['dan', 6], // lost his place, and shows no ticket
    ] as const) {
      expect(placeOf(await join(newApi(), userId)), userId).to.equal(place);
    }
  });
});
