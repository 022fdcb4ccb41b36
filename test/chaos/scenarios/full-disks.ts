import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { silentLog } from '../../../src/core/ports/log.js';
import { startPlainProducer } from '../../../src/rocketmq/plain-producer.js';
import type { Arena } from '../context.js';
import { batchesAtBroker, brokerStore, createTopics, startBroker } from '../harness/broker.js';
import { type Buyers, type Load, userIds } from '../harness/buyers.js';
import {
  fillVolume,
  freeVolume,
  mountRefusal,
  mountVolume,
  moveToSmallVolume,
  unmountBelow,
} from '../harness/disks.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import { deadLettersOf, rowsOf } from '../harness/orders.js';
import { type Program, readMetric } from '../harness/programs.js';
import type { Row } from '../scenario.js';

// M3: the disk of the broker is full. Beyond 85 % it deletes what is old, beyond 90 % it refuses messages.

const VOLUME_BYTES = 1024 ** 3;
const DELETES_AT = 0.87;
const REFUSES_AT = 0.93;
/** The broker looks at its disk every 10 s, for the first time a minute after its start. */
const NOTICES_MS = 90_000;
const SELLS_AGAIN_MS = 60_000;
/** Nothing is published again: what a check-back must heal is not healed by another way. */
const NO_REDRIVE_ENV = { KEEPER_EVERY_MS: '200', REDRIVE_AFTER_MS: '3600000' };
const REDRIVE_ENV = { KEEPER_EVERY_MS: '200', REDRIVE_AFTER_MS: '2000' };

/** `mappedFileSizeCommitLog` of deploy/local/templates/broker.conf. */
const LOG_FILE_BYTES = 134_217_728;
const BALLAST_TOPIC = 'seckill-chaos-ballast';
const BALLAST_BYTES = 3 * 1024 ** 2;

/** The broker begins anew on a small volume of its own, which goes with the row; then it has its old store again. */
async function newStoreOnSmallVolume(arena: Arena): Promise<string> {
  const { stack } = arena;
  const store = brokerStore(stack);
  const proxy = stack.servers.server('proxy');
  await proxy.stop({ signal: 'SIGKILL' });
  arena.atEnd(async () => {
    await proxy.stop({ signal: 'SIGKILL' });
    unmountBelow(store);
  });
  mountVolume(store, VOLUME_BYTES);
  await startBroker(stack);
  await createTopics(stack.servers);
  return store;
}

/** What `/readyz` of a program says of the broker; null while it is well. */
async function complaintOf(program: Program): Promise<string | null> {
  const { status, json } = await ask(`${program.probeUrl}/readyz`);
  const parts = (json.dependencies ?? []) as { readonly name: string; readonly ok: boolean; readonly detail: string }[];
  const broker = parts.find(({ name }) => name === 'rocketmq');
  return status === 503 && broker?.ok === false ? broker.detail : null;
}

const FULL: Row = {
  ...{ id: 'M3', variant: 'full' },
  title: 'the disk of the broker is full: 503 before deduct, /readyz says why; space is freed, the same programs sell',
  ...{ fast: false, alone: true, timeoutMs: 300_000, skip: mountRefusal },
  async run(arena) {
    const { stack, programs, random } = arena;
    const store = await newStoreOnSmallVolume(arena);
    const [api] = await Promise.all([
      arena.start('api'),
      arena.start('worker'),
      arena.start('keeper', { env: NO_REDRIVE_ENV }),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 16, pauseMs: random.whole(20, 40), tries: 1 });
    const before = random.whole(100, 300);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

    fillVolume(store, REFUSES_AT);
    const told = async (): Promise<boolean> => /disk is full/.test((await complaintOf(api)) ?? '');
    await arena.bite('the broker refused messages and /readyz told its disk is full', told, NOTICES_MS);
    const unitsLeft = async (): Promise<number> =>
      (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.unitsLeft ?? Number.NaN;
    const refused = opLog.count('fail');
    await arena.until('buyers are refused', () => opLog.count('fail') > refused + 50);
    const during = await unitsLeft();
    const answer = await buyers.buy('ann');
    expectEqual([answer?.status, answer?.json.code], [503, 'unavailable'], 'status and code of an answer');
    await arena.until('more buyers are refused', () => opLog.count('fail') > refused + 150);
    expectEqual(await unitsLeft(), during, 'units left: no half message, no deduct');

    freeVolume(store);
    arena.faultEnded();
    const okBefore = opLog.count('ok');
    await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 100, SELLS_AGAIN_MS);
    await load.stop();
    const running = programs.running.map(({ name }) => name);
    expectEqual(running, ['api', 'worker', 'keeper'], 'programs that run');
    await arena.until('/readyz is content', async () => (await complaintOf(api)) === null);
    await arena.rest(saleId);
    await buyers.askAgain();
    expectEqual((await arena.rest(saleId)).rows, opLog.count('ok'), 'rows and buyers who heard yes');
  },
};

/** Messages that nobody wants, until the log of the broker begins another file: the first may be deleted then. */
async function rollTheLog({ stack }: Arena): Promise<void> {
  const entry = { topicName: BALLAST_TOPIC, readQueueNums: 1, writeQueueNums: 1, perm: 6 };
  await stack.servers.applyTopics({
    topics: [{ ...entry, attributes: { '+message.type': 'NORMAL' } }],
    groups: [],
  });
  const options = { endpoint: stack.env.ROCKETMQ_ENDPOINT, requestTimeoutMs: 10_000, log: silentLog };
  const producer = await startPlainProducer(BALLAST_TOPIC, options);
  try {
    for (let bytes = 0; bytes <= LOG_FILE_BYTES; bytes += BALLAST_BYTES) {
      await producer.send({ body: Buffer.alloc(BALLAST_BYTES) }, 'ballast');
    }
  } finally {
    await producer.close();
  }
}

const DELETED: Row = {
  ...{ id: 'M3', variant: 'deleted' },
  title: 'the broker deletes messages that nobody has received, for want of space: they are published again',
  ...{ fast: false, alone: true, timeoutMs: 300_000, skip: mountRefusal },
  async run(arena) {
    const { stack, random } = arena;
    const store = await newStoreOnSmallVolume(arena);
    const oldest = join(store, 'commitlog', '0'.repeat(20));
    const api = await arena.start('api');
    const { saleId } = await arena.openSale({ stock: 1000 });
    const buyers = arena.buyers(saleId, [api]);
    const users = userIds(random.whole(20, 60));
    for (const answer of await buyers.rush(users, 8)) expectEqual(answer?.status, 202, 'the purchase');
    const { pending = [] } = (await stack.audit.store.snapshot({ saleId, bucket: 0 })) ?? {};
    const known = async (): Promise<number> => batchesAtBroker(stack, pending);
    await arena.until('every batch is committed', async () => (await known()) === pending.length);

    await rollTheLog(arena);
    fillVolume(store, DELETES_AT);
    await arena.bite(
      `the broker deleted ${pending.length} batches`,
      async () => !existsSync(oldest) && (await known()) === 0,
      NOTICES_MS,
    );
    arena.faultEnded();
    const [keeper] = await Promise.all([arena.start('keeper', { env: REDRIVE_ENV }), arena.start('worker')]);
    expectFields(await arena.rest(saleId), { rows: users.length, failedRows: 0 }, 'one order each');
    const redriven = await readMetric(keeper, 'seckill_redriven_batches_total');
    expectAtLeast(redriven, pending.length, 'batches published again');
    expectEqual((await buyers.buy('late', { tries: 5 }))?.status, 202, 'the next purchase');
  },
};

// L3: the disk under the local stack is full. That of the broker is M3.

/** For files to grow until they would need one more block. */
const FULL_WITHIN_MS = 90_000;

interface Loaded {
  readonly saleId: string;
  readonly api: Program;
  readonly worker: Program;
  readonly buyers: Buyers;
  readonly load: Load;
}

/** A sale that never sells out, and a load that makes files grow. */
async function underLoad(arena: Arena): Promise<Loaded> {
  const [api, worker] = await Promise.all([arena.start('api'), arena.start('worker'), arena.start('keeper')]);
  const { saleId } = await arena.openSale({ stock: 100_000 });
  const buyers = arena.buyers(saleId, [api]);
  const load = buyers.startLoad({ parallel: 16, pauseMs: arena.random.whole(10, 30), tries: 1 });
  await arena.until('the load is on', () => buyers.opLog.count('ok') > 100, 30_000);
  return { saleId, api, worker, buyers, load };
}

const pidsOf = ({ programs }: Arena): number[] => programs.running.map(({ pid }) => pid);

/** The same programs and server serve, and whoever heard yes has an order. */
async function expectHealed(arena: Arena, { saleId, buyers, load }: Loaded, pids: readonly number[]): Promise<void> {
  const { opLog } = buyers;
  const before = { ok: opLog.count('ok'), rows: await rowsOf(arena.stack, saleId) };
  await arena.until('buyers hear yes', () => opLog.count('ok') > before.ok + 50, SELLS_AGAIN_MS);
  await arena.until(
    'orders are written',
    async () => (await rowsOf(arena.stack, saleId)) > before.rows,
    SELLS_AGAIN_MS,
  );
  await load.stop();
  expectEqual(pidsOf(arena), pids, 'programs: none had to start again');
  await buyers.askAgain();
  expectFields(await arena.rest(saleId), { rows: opLog.count('ok'), failedRows: 0 }, 'rows of those who heard yes');
  expectEqual(await deadLettersOf(arena.stack, saleId), 0, 'dead letters');
}

/** What `/readyz` says of Redis while it is not well; null otherwise. */
async function redisComplaintOf({ probeUrl }: Program): Promise<string | null> {
  const { status, json } = await ask(`${probeUrl}/readyz`);
  const parts = (json.dependencies ?? []) as { readonly name: string; readonly ok: boolean; readonly detail: string }[];
  const redis = parts.find(({ name }) => name === 'redis');
  return status === 503 && redis?.ok === false ? redis.detail : null;
}

const REDIS_FULL: Row = {
  ...{ id: 'L3', variant: 'redis' },
  title: 'the disk under Redis is full: 503, `/readyz` says why, a program can start; with space again all heals',
  ...{ fast: false, alone: true, timeoutMs: 300_000, skip: mountRefusal },
  async run(arena) {
    const { stack } = arena;
    const dir = await moveToSmallVolume(arena, 'redis');
    const loaded = await underLoad(arena);
    const { api, buyers } = loaded;
    fillVolume(dir, 1);
    const fails = async (): Promise<boolean> =>
      (await stack.redis.redis.info('persistence')).includes('aof_last_write_status:err');
    await arena.bite('Redis could not write its append-only file', fails, FULL_WITHIN_MS);
    await arena.until('/readyz says so', async () => /append-only file/.test((await redisComplaintOf(api)) ?? ''));
    const { opLog } = buyers;
    const unheard = (): number => opLog.count('fail') + opLog.count('unknown');
    const before = { ok: opLog.count('ok'), unheard: unheard() };
    await arena.until('buyers are refused', () => unheard() > before.unheard + 50, 30_000);
    expectEqual((await buyers.buy('ann'))?.status, 503, 'the answer to a purchase');
    expectEqual(opLog.count('ok'), before.ok, 'buyers who heard yes: nobody meanwhile');
    await arena.start('api'); // one that crashed meanwhile would come back
    const pids = pidsOf(arena);
    const server = stack.servers.server('redis').pid();

    freeVolume(dir);
    arena.faultEnded();
    await arena.until('/readyz is content', async () => (await redisComplaintOf(api)) === null);
    await expectHealed(arena, loaded, pids);
    expectEqual(stack.servers.server('redis').pid(), server, 'the process of Redis');
  },
};

const MYSQL_FULL: Row = {
  ...{ id: 'L3', variant: 'mysql' },
  title:
    'the disk under MariaDB is full: buyers hear 202, orders wait; with space again each is written, no dead letter',
  ...{ fast: false, alone: true, timeoutMs: 300_000, skip: mountRefusal },
  async run(arena) {
    const { stack } = arena;
    const dir = await moveToSmallVolume(arena, 'mariadb');
    const loaded = await underLoad(arena);
    const { worker, buyers } = loaded;
    const { opLog } = buyers;
    fillVolume(dir, 1);
    await arena.bite(
      'a worker could not write: the disk is full',
      () => /mysql: disk_full/.test(worker.log),
      FULL_WITHIN_MS,
    );
    const ok = opLog.count('ok');
    await arena.until('purchases are accepted all the same', () => opLog.count('ok') > ok + 100, 30_000);
    const pids = pidsOf(arena);
    const server = stack.servers.server('mariadb').pid();

    freeVolume(dir);
    arena.faultEnded();
    await expectHealed(arena, loaded, pids);
    expectEqual(stack.servers.server('mariadb').pid(), server, 'the process of MariaDB');
  },
};

export const FULL_DISKS_SCENARIOS: readonly Row[] = [FULL, DELETED, REDIS_FULL, MYSQL_FULL];
