import type { Arena } from '../arena.js';
import type { Buyers, Load } from '../harness/buyers.js';
import { expectEqual, expectFields } from '../harness/expect.js';
import { ask } from '../harness/http-client.js';
import { moveToSmallVolume } from '../harness/moved-data.js';
import { deadLettersOf, rowsOf } from '../harness/orders-of-sale.js';
import type { Program } from '../harness/programs.js';
import { fillVolume, freeVolume, mountRefusal } from '../harness/small-volume.js';
import type { Row } from '../row.js';

// L3: the disk under the local stack is full. That of the broker is M3.

/** For files to grow until they would need one more block. */
const FULL_WITHIN_MS = 90_000;
const SELLS_AGAIN_MS = 60_000;

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
async function complaintOf({ probeUrl }: Program): Promise<string | null> {
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
    await arena.until('/readyz says so', async () => /append-only file/.test((await complaintOf(api)) ?? ''));
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
    await arena.until('/readyz is content', async () => (await complaintOf(api)) === null);
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

export const FULL_DISK_ROWS: readonly Row[] = [REDIS_FULL, MYSQL_FULL];
