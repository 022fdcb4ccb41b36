import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ScenarioContext } from '../context.js';
import { deductBatch, publishBatches } from '../harness/batches.js';
import { outcomeOf, userIds } from '../harness/buyers.js';
import { expectBelow, expectEqual, expectOneOf, expectTrue } from '../harness/expect.js';
import { ask, openSocket } from '../harness/http.js';
import { batchesInFlight, expectRowPerAccepted, queuedPurchases, startSystem } from '../harness/load.js';
import { readMetric, type Program } from '../harness/programs.js';
import type { Scenario } from '../scenario.js';

// G8, G9, S7, S9: more requests than an api can serve, and slow clients.

const rssMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const QUEUE_FULL: Scenario = {
  name: 'G8',
  title: 'the broker stalls for 5 s at ten times the load: 503 overloaded before any half message, memory is bounded',
  alone: true,
  async run(context) {
    const QUEUE_MAX = 64;
    const { stack, random } = context;
    const times = { BATCH_WAIT_MAX_MS: '1000', ROCKETMQ_REQUEST_TIMEOUT_MS: '3000' };
    const env = { BATCH_SIZE_MAX: '32', BATCH_QUEUE_MAX: String(QUEUE_MAX), ...times };
    const { api, saleId, buyers } = await startSystem(context, { stock: 100_000 }, { api: env });
    const { opLog } = buyers;
    const load = await buyers.startLoadUntil({ parallel: 16, pauseMs: 20, tries: 1 }, random.whole(100, 400));
    const overload = buyers.startLoad({ parallel: 160, pauseMs: 20, tries: 1, prefix: 'rush' });
    await context.until('ten times as many', () => opLog.requests > 1000);
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
      queueMax = Math.max(queueMax, await queuedPurchases([api]));
      return performance.now() - stoppedMs >= 5000;
    };
    await context.until('five seconds are over', watch);
    const refused = (await overloaded()) - refusedBefore;
    const sentMeanwhile = (await sent()) - sentBefore;
    broker.kill('SIGCONT');
    context.faultEnded();
    await context.observed('buyers got overloaded', () => refused > QUEUE_MAX);
    expectBelow(queueMax, QUEUE_MAX + 1, 'purchases in the queue');
    expectBelow(sentMeanwhile, 3 * 3 + 1, 'half messages that ended in 5 s: three slots, a time-out of 3 s');
    expectBelow(rssMaxMib - rssBeforeMib, 100, 'MiB that the api grew by');
    await overload.stop();
    await buyers.untilAccepted(100, 'it sells again');
    await load.stop();
    await buyers.retryUnknown();
    await context.expectFigures(saleId, { failedRows: 0 }, 'nothing failed');
    expectEqual(opLog.count('unknown'), 0, 'purchases without an answer');
  },
};

const SLOTS_STALLED: Scenario = {
  name: 'G9',
  title: 'the broker connection stalls with a batch in every slot: time-outs free the slots, the next buyer is served',
  alone: true, // its api would swallow check-backs of parallel scenarios
  async run(context) {
    const SLOTS = 3;
    const { proxy, env } = await context.proxy('broker');
    const slots = { BATCH_IN_FLIGHT_MAX: String(SLOTS), BATCH_GATHER_MS: '0' };
    const [{ saleId }, api] = await Promise.all([
      context.openSale({ stock: 100_000 }),
      context.start('api', { env: { ...env, ...slots, ROCKETMQ_REQUEST_TIMEOUT_MS: '1500' } }),
      context.start('worker'),
      context.start('keeper'),
    ]);
    const buyers = context.buyers(saleId, [api]);
    proxy.requestDelayMs = 50; // half messages and commits are always both under way
    const options = { parallel: 48, pauseMs: 5, tries: 1 };
    const load = await buyers.startLoadUntil(options, context.random.whole(100, 300));
    const timedOut = async (): Promise<number> =>
      (await readMetric(api, 'seckill_half_send_seconds_count{outcome="outcome_unknown"}')) +
      (await readMetric(api, 'seckill_half_end_failures_total'));
    const before = await timedOut();
    proxy.stall();
    await context.observed('every slot hangs', async () => (await batchesInFlight([api])) === SLOTS);
    await context.observed('each of them timed out', async () => (await timedOut()) >= before + SLOTS);
    await load.stop();
    await context.until('the slots are free', async () => (await batchesInFlight([api])) === 0);
    proxy.requestDelayMs = 0;
    proxy.resume();
    context.faultEnded();
    const startedMs = performance.now();
    expectEqual((await buyers.buy('next'))?.status, 202, 'the answer to the next buyer');
    expectBelow(performance.now() - startedMs, 1500, 'ms until that answer');
    await expectRowPerAccepted(context, buyers);
  },
};

const IDLE = 2000;
const SHORT_TIMEOUTS = {
  HTTP_CONNECTIONS_MAX: '2400',
  EVENTS_STREAMS_MAX: '100',
  HTTP_HEADERS_TIMEOUT_MS: '5000',
  HTTP_REQUEST_TIMEOUT_MS: '6000',
  HTTP_KEEP_ALIVE_TIMEOUT_MS: '3000',
};
const TRICKLE_MS = 200;

const allClosed = (sockets: readonly Socket[]): boolean => sockets.every((socket) => socket.closed);

/** Sends the start of a request, then a byte now and then, until the server closes the connection. */
function trickle(url: string, start: string): Socket {
  const socket = openSocket(url);
  socket.write(start);
  const timer = setInterval(() => socket.write('x'), TRICKLE_MS);
  socket.on('close', () => clearInterval(timer));
  return socket.resume();
}

const SLOW_CLIENTS: Scenario = {
  name: 'S7',
  title: '2,000 idle sockets, slow headers, slow bodies, long polls: closed by time-out or cap, others are served',
  async run(context) {
    const { stack } = context;
    const [api, { saleId }] = await Promise.all([
      context.start('api', { env: SHORT_TIMEOUTS }),
      context.openSale({ stock: 500 }),
      context.healthyPrograms(),
    ]);
    const waiters = userIds(10, 'waiter-');
    const unpublished = await deductBatch(stack, saleId, waiters);
    const buyers = context.buyers(saleId, [api]);
    const poll = async (waiter: string) => {
      for (;;) {
        const answer = await buyers.status(waiter, 'k1', 30);
        if (answer.json.status !== 'pending') return answer; // on a slow machine the batch is published after 30 s
      }
    };
    const polls = waiters.flatMap((waiter) => Array.from({ length: 10 }, () => poll(waiter))); // the maximum per buyer
    await buyers.rush(userIds(5, 'behind'), 5, { tries: 5 }); // the polls have been read by then
    const idle = Array.from({ length: IDLE }, () => openSocket(api.url).resume());
    const areOpen = (): boolean => idle.every((socket) => !socket.connecting && !socket.closed);
    await context.observed('2,000 sockets are open', areOpen);
    const head = `POST /v1/sales/${saleId}/purchases HTTP/1.1\r\nHost: a-test\r\nIdempotency-Key: k1\r\n`;
    const body = `Authorization: Bearer ${buyers.token('slow')}\r\nContent-Type: application/json\r\nContent-Length: 2000\r\n\r\n`;
    const slow = Array.from({ length: 100 }, (_, i) => trickle(api.url, i % 2 ? `${head}X-Slow: ` : head + body));
    const users = userIds(context.random.whole(50, 150));
    for (const answer of await buyers.rush(users, 16, { tries: 5 })) {
      expectEqual(outcomeOf(answer), 'accepted', 'the answer to others');
    }
    await context.observed('idle sockets are closed by time-out', () => allClosed(idle));
    await context.observed('slow requests are closed by time-out', () => allClosed(slow));

    const many = Array.from({ length: 2500 }, () => openSocket(api.url).resume());
    await context.until('all of them are closed', () => allClosed(many));
    const dropped = () => readMetric(api, 'seckill_http_connections_dropped_total');
    await context.observed('connections beyond the cap were closed', async () => (await dropped()) >= 1);
    await publishBatches(stack, [unpublished]);
    context.faultEnded();
    for (const { status, json } of await Promise.all(polls)) {
      expectEqual([status, json.status], [200, 'ordered'], 'the answer to a long poll');
    }
    await context.expectFigures(saleId, { rows: users.length + 5 + waiters.length, failedRows: 0 }, 'one order each');
  },
};

const FLOOD: Scenario = {
  name: 'S9',
  title: 'one buyer floods with a forged X-Forwarded-For: others are served; no secret, no user id in logs or metrics',
  async run(context) {
    const [api, healthy, { saleId }] = await Promise.all([
      context.start('api', { env: { LOG_LEVEL: 'debug' } }),
      context.healthyPrograms(),
      context.openSale({ stock: 500 }),
    ]);
    const buyers = context.buyers(saleId, [api]);
    const flooder = `flooder-${randomBytes(6).toString('hex')}`;
    const token = buyers.token(flooder);
    const address = `203.0.113.${context.random.whole(1, 254)}`;
    const purchases = `${api.url}/v1/sales/${saleId}/purchases`;
    const forged = { 'X-Forwarded-For': address, Forwarded: `for=${address}` };
    let running = true;
    const statuses = new Map<number, number>();
    const lane = async (number: number): Promise<void> => {
      for (let nth = 0; running; nth++) {
        const headers = { 'Idempotency-Key': `${number}-${nth}`, ...forged };
        const { status } = await ask(purchases, { method: 'POST', token, headers, body: { quantity: 1 } });
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        await sleep(2);
      }
    };
    const lanes = Array.from({ length: 16 }, (_, number) => lane(number));
    const users = userIds(context.random.whole(50, 150), `other-${saleId}-`);
    const answers = await buyers.rush(users, 8, { tries: 3 });
    const flooded = (): number => [...statuses.values()].reduce((total, count) => total + count, 0);
    await context.observed('one buyer sent more than all others', () => flooded() > 2 * users.length);
    running = false;
    await Promise.all(lanes);
    context.faultEnded();
    for (const answer of answers) expectEqual(outcomeOf(answer), 'accepted', 'the answer to another buyer');
    expectEqual(statuses.get(202), 1, 'purchases of the flooder that were accepted');
    for (const status of statuses.keys()) expectOneOf(status, [202, 409, 429], 'answers to the flooder');
    await context.expectFigures(saleId, { rows: users.length + 1, failedRows: 0 }, 'one order each');
    const signature = token.slice(token.lastIndexOf('.') + 1);
    await expectNoneLeaked(
      [api, healthy.api, healthy.keeper, ...healthy.workers],
      [flooder, `other-${saleId}-`, address, token, signature, ...secretsOf(context)],
    );
  },
};

/** Secrets of the environment: the key of the tokens and the passwords of the servers. */
function secretsOf({ stack: { env } }: ScenarioContext): string[] {
  const passwords = [env.MYSQL_URL, env.REDIS_URL].map((url) => decodeURIComponent(new URL(url).password));
  return [env.JWT_SECRET, ...passwords].filter((secret) => secret.length >= 6);
}

async function expectNoneLeaked(programs: readonly Program[], secrets: readonly string[]): Promise<void> {
  for (const program of programs) {
    const { text: metrics } = await ask(`${program.operatorsUrl}/metrics`);
    expectTrue(metrics.includes('seckill_') && program.log.length > 0, `the ${program.name} has a log and metrics`);
    for (const secret of secrets) {
      expectTrue(!program.log.includes(secret), `the log of the ${program.name} holds ${secret.slice(0, 8)}…`);
      expectTrue(!metrics.includes(secret), `the metrics of the ${program.name} hold ${secret.slice(0, 8)}…`);
    }
  }
}

export const OVERLOAD_SCENARIOS: readonly Scenario[] = [QUEUE_FULL, SLOTS_STALLED, SLOW_CLIENTS, FLOOD];
