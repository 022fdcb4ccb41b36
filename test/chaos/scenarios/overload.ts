import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { newBatchId, sealBatch } from '../../../src/core/batch.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { createRedriveChannel } from '../../../src/rocketmq/redrive-channel.js';
import type { Arena } from '../context.js';
import { userIds, wordOf } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf, expectTrue } from '../harness/expect.js';
import { ask, openSocket } from '../harness/http.js';
import { inQueue, onTheWay } from '../harness/load.js';
import { type Program, readMetric } from '../harness/programs.js';
import type { Row } from '../scenario.js';

// G: more purchases than the way to the broker takes.

const rssMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const QUEUE_FULL: Row = {
  id: 'G8',
  title: 'the broker stalls for 5 s at ten times the load: 503 overloaded before any half message, memory bounded',
  ...{ fast: false, alone: true },
  async run(arena) {
    const QUEUE_MAX = 64;
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api', {
        env: { BATCH_SIZE_MAX: '32', BATCH_QUEUE_MAX: String(QUEUE_MAX), BATCH_WAIT_MAX_MS: '1000' },
      }),
      arena.start('worker'),
      arena.start('keeper'),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 16, pauseMs: 20, tries: 1 });
    const before = random.whole(100, 400);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
    const rush = buyers.startLoad({ parallel: 160, pauseMs: 20, tries: 1, prefix: 'rush' });
    await arena.until('ten times as many', () => opLog.requests > 1000, 30_000);
    const sent = () => readMetric(api, 'seckill_half_send_seconds_count');
    const overloaded = () => readMetric(api, 'seckill_http_answers_total{route="purchase",code="overloaded"}');

    const broker = stack.servers.server('proxy');
    broker.kill('SIGSTOP');
    const stoppedMs = performance.now();
    const [sentBefore, refusedBefore, rssBeforeMib] = [await sent(), await overloaded(), rssMib(api.pid)];
    let rssMaxMib = rssBeforeMib;
    let queueMax = 0;
    const watch = async (): Promise<boolean> => {
      rssMaxMib = Math.max(rssMaxMib, rssMib(api.pid));
      queueMax = Math.max(queueMax, await inQueue([api]));
      return performance.now() - stoppedMs >= 5000;
    };
    await arena.until('five seconds are over', watch, 20_000);
    const refused = (await overloaded()) - refusedBefore;
    const sentMeanwhile = (await sent()) - sentBefore;
    broker.kill('SIGCONT');
    arena.faultEnded();
    await arena.bite('buyers heard overloaded', () => refused > QUEUE_MAX);
    expectBelow(queueMax, QUEUE_MAX + 1, 'purchases in the queue');
    expectBelow(sentMeanwhile, 3 * 3 + 1, 'half messages that ended in 5 s: three slots, a time-out of 3 s');
    expectBelow(rssMaxMib - rssBeforeMib, 100, 'MiB that the api grew by');
    await rush.stop();
    const okBefore = opLog.count('ok');
    await arena.until('it sells again', () => opLog.count('ok') > okBefore + 100, 30_000);
    await load.stop();
    await buyers.askAgain();
    expectFields(await arena.rest(saleId), { failedRows: 0 }, 'nothing failed');
    expectEqual(opLog.count('unknown'), 0, 'buyers who do not know');
  },
};

const EVERY_SLOT: Row = {
  id: 'G9',
  title:
    'the way to the broker falls silent with a batch in every slot: time-outs free the slots, a lone buyer is served',
  ...{ fast: false, alone: true }, // its api would swallow check-backs of rows beside it
  async run(arena) {
    const { random } = arena;
    const SLOTS = 3;
    const broker = await arena.proxy('broker');
    const slots = { BATCH_IN_FLIGHT_MAX: String(SLOTS), BATCH_GATHER_MS: '0' };
    const env = { ...broker.env, ...slots, ROCKETMQ_REQUEST_TIMEOUT_MS: '1500' };
    const [{ saleId }, api] = await Promise.all([
      arena.openSale({ stock: 100_000 }),
      arena.start('api', { env }),
      arena.start('worker'),
      arena.start('keeper'),
    ]);
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    broker.proxy.requestDelayMs = 50; // half messages and commits are both on their way at any moment
    const load = buyers.startLoad({ parallel: 48, pauseMs: 5, tries: 1 });
    const before = random.whole(100, 300);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
    const hung = async (): Promise<number> =>
      (await readMetric(api, 'seckill_half_send_seconds_count{outcome="outcome_unknown"}')) +
      (await readMetric(api, 'seckill_half_end_failures_total'));
    const hungBefore = await hung();
    broker.proxy.fallSilent();
    await arena.bite('every slot hangs', async () => (await onTheWay([api])) === SLOTS);
    await arena.bite('each of them ran into its time-out', async () => (await hung()) >= hungBefore + SLOTS);
    await load.stop();
    await arena.until('the slots are free', async () => (await onTheWay([api])) === 0);
    broker.proxy.requestDelayMs = 0;
    broker.proxy.speak();
    arena.faultEnded();
    const startedMs = performance.now();
    const lone = await buyers.buy('lone');
    expectEqual(lone?.status, 202, 'the answer to a lone buyer');
    expectBelow(performance.now() - startedMs, 1500, 'ms that he waited');
    await buyers.askAgain();
    expectEqual(opLog.count('unknown'), 0, 'buyers who do not know');
    const { rows } = await arena.rest(saleId);
    expectEqual(rows, opLog.count('ok'), 'rows and buyers who heard yes');
  },
};

// S: clients that dawdle, come at the wrong time, or come too often.

const IDLE = 2000;
const SLOW_TIMES = {
  ...{ HTTP_CONNECTIONS_MAX: '2400', EVENTS_STREAMS_MAX: '100', HTTP_HEADERS_TIMEOUT_MS: '5000' },
  ...{ HTTP_REQUEST_TIMEOUT_MS: '6000', HTTP_KEEP_ALIVE_TIMEOUT_MS: '3000' },
};
const TRICKLE_MS = 200;

const allClosed = (sockets: readonly Socket[]): boolean => sockets.every((socket) => socket.closed);

/** Sends the beginning of a request, then a byte now and then, until it is cut off. */
function trickle(url: string, beginning: string): Socket {
  const socket = openSocket(url);
  socket.write(beginning);
  const timer = setInterval(() => socket.write('x'), TRICKLE_MS);
  socket.on('close', () => clearInterval(timer));
  socket.resume();
  return socket;
}

/** A buyer whose units are held and whose batch nobody has published yet. */
async function heldBatch(arena: Arena, saleId: string) {
  const batch = sealBatch({
    ...{ batchId: newBatchId(), saleId, bucket: 0, epoch: 1 },
    ...{ createdAtMs: Date.now(), trace: '', purchases: [{ userId: 'waiter', requestId: 'k1', quantity: 1 }] },
  });
  const { outcome } = await createStockStore(arena.stack.redis, silentLog).deduct(batch);
  expectEqual(outcome, 'deducted', 'deduct');
  return batch;
}

const SLOW: Row = {
  id: 'S7',
  title: '2,000 idle sockets, slow headers, slow bodies, slow long polls: closed by time-out or cap, others are served',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [api, { saleId }, channel] = await Promise.all([
      arena.start('api', { env: SLOW_TIMES }),
      arena.openSale({ stock: 500 }),
      createRedriveChannel({ endpoint: arena.stack.env.ROCKETMQ_ENDPOINT, log: silentLog }),
      arena.survivors(),
    ]);
    try {
      const held = await heldBatch(arena, saleId);
      const buyers = arena.buyers(saleId, [api]);
      const polls = Array.from({ length: 100 }, () => buyers.status('waiter', 'k1', 30));
      await buyers.rush(userIds(5, 'behind'), 5, { tries: 5 }); // the polls have been read by then
      const idle = Array.from({ length: IDLE }, () => openSocket(api.url).resume());
      await arena.bite('2,000 sockets are open', () => idle.every((socket) => !socket.connecting && !socket.closed));
      const address = `/v1/sales/${saleId}/purchases`;
      const head = `POST ${address} HTTP/1.1\r\nHost: a-test\r\nIdempotency-Key: k1\r\n`;
      const body = `Authorization: Bearer ${buyers.token('slow')}\r\nContent-Type: application/json\r\nContent-Length: 2000\r\n\r\n`;
      const slow = Array.from({ length: 100 }, (_, i) => trickle(api.url, i % 2 ? `${head}X-Slow: ` : head + body));
      const users = userIds(arena.random.whole(50, 150));
      for (const answer of await buyers.rush(users, 16, { tries: 5 })) expectEqual(wordOf(answer), 'yes', 'the answer');
      await arena.bite('idle sockets are closed by time-out', () => allClosed(idle), 30_000);
      await arena.bite('slow requests are closed by time-out', () => allClosed(slow), 30_000);

      const crowd = Array.from({ length: 2500 }, () => openSocket(api.url).resume());
      await arena.until('the crowd is gone', () => allClosed(crowd), 30_000);
      const dropped = () => readMetric(api, 'seckill_http_connections_dropped_total');
      await arena.bite('connections beyond the cap were closed', async () => (await dropped()) >= 1);
      await channel.publish(held);
      arena.faultEnded();
      for (const { status, json } of await Promise.all(polls)) {
        expectEqual([status, json.status], [200, 'ordered'], 'what a long poll hears');
      }
      expectFields(await arena.rest(saleId), { rows: users.length + 6, failedRows: 0 }, 'one order each');
    } finally {
      await channel.close();
    }
  },
};

/** SIGUSR2 sets the clock of a program five minutes ahead, SIGWINCH five minutes back; its start sees the true time. */
const SKEWED_CLOCK = `data:text/javascript,${encodeURIComponent(`
  const now = Date.now;
  const skewTo = (ms) => () => { Date.now = () => now() + ms; };
  process.on('SIGUSR2', skewTo(300000));
  process.on('SIGWINCH', skewTo(-300000));
`)}`;

interface Press {
  readonly said: string;
  readonly beforeMs: number;
  readonly afterMs: number;
}

const EDGES: Row = {
  id: 'S8',
  title: 'buyers before the opening, across both edges and after the close, api clocks 5 min off: Redis time decides',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { redis } = arena.stack.redis;
    const broker = await arena.proxy('broker');
    const start = () => arena.start('api', { env: broker.env, preload: [SKEWED_CLOCK] });
    const [ahead, back] = await Promise.all([start(), start(), arena.survivors()]);
    broker.proxy.requestDelayMs = arena.random.whole(50, 200); // precheck on one side of an edge, deduct on the other
    ahead.signal('SIGUSR2');
    back.signal('SIGWINCH');
    const isSkewed = async ({ url }: Program): Promise<boolean> => {
      return /clock skew -?(29|30)\d{4} ms/.test((await ask(`${url}/readyz`)).text);
    };
    await arena.bite('both clocks are wrong', async () => (await isSkewed(ahead)) && (await isSkewed(back)));
    const nowMs = Date.now();
    const opensAtMs = nowMs + arena.random.whole(6000, 8000); // some press before, however long the sale takes to warm
    const closesAtMs = opensAtMs + arena.random.whole(2000, 4000);
    const { saleId } = await arena.openSale({ stock: 100_000, opensAtMs, closesAtMs });
    const buyers = arena.buyers(saleId, [ahead, back]);
    const timeMs = async (): Promise<number> => {
      const [seconds, micros] = await redis.time();
      return Number(seconds) * 1000 + Number(micros) / 1000;
    };
    const presses: Press[] = [];
    const hand = async (number: number): Promise<void> => {
      for (let press = 0; (await timeMs()) < closesAtMs + 1000; press++) {
        const beforeMs = await timeMs();
        const answer = await buyers.buy(`u${number}-${press}`);
        const said = String(answer?.json.code ?? answer?.json.status ?? 'nothing');
        presses.push({ said, beforeMs, afterMs: await timeMs() });
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, number) => hand(number)));
    arena.faultEnded();
    for (const { said, beforeMs, afterMs } of presses) {
      const open = afterMs >= opensAtMs && beforeMs < closesAtMs;
      expectOneOf(said, ['pending', 'not_open', 'closed', 'nothing', 'outcome_unknown', 'overloaded'], 'an answer');
      if (said === 'pending') expectTrue(open, `accepted ${Math.round(beforeMs - opensAtMs)} ms after the opening`);
      if (said === 'not_open') expectTrue(beforeMs < opensAtMs, 'not_open is said before the opening only');
      if (said === 'closed') expectTrue(afterMs >= closesAtMs, 'closed is said after the close only');
    }
    for (const word of ['pending', 'not_open', 'closed']) {
      expectAtLeast(presses.filter(({ said }) => said === word).length, 5, `answers ${word}`);
    }
    const figures = await arena.rest(saleId);
    expectAtLeast(figures.rows, buyers.opLog.count('ok'), 'rows: what was held before the close is recorded after it');
  },
};

const FLOOD: Row = {
  id: 'S9',
  title:
    'a flood by one buyer with forged X-Forwarded-For: others are served; no secret and no user id in logs or metrics',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [api, survivors, { saleId }] = await Promise.all([
      arena.start('api', { env: { LOG_LEVEL: 'debug' } }),
      arena.survivors(),
      arena.openSale({ stock: 500 }),
    ]);
    const buyers = arena.buyers(saleId, [api]);
    const flooder = `flooder-${randomBytes(6).toString('hex')}`;
    const token = buyers.token(flooder);
    const address = `203.0.113.${arena.random.whole(1, 254)}`;
    const purchases = `${api.url}/v1/sales/${saleId}/purchases`;
    let running = true;
    const statuses = new Map<number, number>();
    const flood = async (hand: number): Promise<void> => {
      for (let press = 0; running; press++) {
        const headers = {
          'Idempotency-Key': `${hand}-${press}`,
          'X-Forwarded-For': address,
          Forwarded: `for=${address}`,
        };
        const { status } = await ask(purchases, { method: 'POST', token, headers, body: { quantity: 1 } });
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        await sleep(2);
      }
    };
    const hands = Array.from({ length: 16 }, (_, hand) => flood(hand));
    const users = userIds(arena.random.whole(50, 150), `other-${saleId}-`);
    const answers = await buyers.rush(users, 8, { tries: 3 });
    const flooded = (): number => [...statuses.values()].reduce((sum, count) => sum + count, 0);
    await arena.bite('one buyer asked more often than all others', () => flooded() > 2 * users.length);
    running = false;
    await Promise.all(hands);
    arena.faultEnded();
    for (const answer of answers) expectEqual(wordOf(answer), 'yes', 'the answer to another buyer');
    expectEqual(statuses.get(202), 1, 'purchases of the flooder that were accepted');
    for (const status of statuses.keys()) expectOneOf(status, [202, 409, 429], 'what the flooder hears');
    expectFields(await arena.rest(saleId), { rows: users.length + 1, failedRows: 0 }, 'one order each');
    await expectNothingTold(
      arena,
      [api, survivors.api, survivors.keeper, ...survivors.workers],
      [...[flooder, `other-${saleId}-`, address, token, token.slice(token.lastIndexOf('.') + 1)], ...secretsOf(arena)],
    );
  },
};

/** What the environment keeps secret: the key of the tokens, the passwords of the servers. */
function secretsOf({ stack: { env } }: Arena): string[] {
  const passwords = [env.MYSQL_URL, env.REDIS_URL].map((url) => decodeURIComponent(new URL(url).password));
  return [env.JWT_SECRET, ...passwords].filter((secret) => secret.length >= 6);
}

async function expectNothingTold(
  arena: Arena,
  programs: readonly Program[],
  secrets: readonly string[],
): Promise<void> {
  for (const program of programs) {
    const { text: metrics } = await ask(`${program.probeUrl}/metrics`);
    expectTrue(metrics.includes('seckill_') && program.log.length > 0, `the ${program.name} has a log and metrics`);
    for (const secret of secrets) {
      expectTrue(!program.log.includes(secret), `the log of the ${program.name} holds ${secret.slice(0, 8)}…`);
      expectTrue(!metrics.includes(secret), `the metrics of the ${program.name} hold ${secret.slice(0, 8)}…`);
    }
  }
}

export const OVERLOAD_SCENARIOS: readonly Row[] = [QUEUE_FULL, EVERY_SLOT, SLOW, EDGES, FLOOD];
