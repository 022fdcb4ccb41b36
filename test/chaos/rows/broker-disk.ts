import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { silentLog } from '../../../src/core/ports/log.js';
import { startPlainProducer } from '../../../src/rocketmq/plain-producer.js';
import type { Arena } from '../arena.js';
import { batchesAtBroker, brokerStore, createTopics, startBroker } from '../harness/broker-hands.js';
import { userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { ask } from '../harness/http-client.js';
import { readMetric } from '../harness/metrics.js';
import type { Program } from '../harness/programs.js';
import { fillVolume, freeVolume, mountRefusal, mountVolume, unmountBelow } from '../harness/small-volume.js';
import type { Row } from '../row.js';

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
async function moveToSmallVolume(arena: Arena): Promise<string> {
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
    const store = await moveToSmallVolume(arena);
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
    const store = await moveToSmallVolume(arena);
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

export const BROKER_DISK_ROWS: readonly Row[] = [FULL, DELETED];
