import { mkdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import type { Arena } from '../context.js';
import type { Buyers } from '../harness/buyers.js';
import { expectBelow, expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import type { Program } from '../harness/programs.js';
import { repaired, standingOf } from '../harness/redis.js';
import type { TcpProxy } from '../harness/tcp-proxy.js';
import type { Row } from '../scenario.js';

// R: Redis dies, forgets, falls silent.

const REPLY_TIMEOUT = { REDIS_REPLY_TIMEOUT_MS: '500' };

const REDIS_ROWS: readonly Row[] = [
  {
    id: 'R1',
    title: 'kill -9 of Redis under load and a restart with its log: nothing is lost, the same programs go on',
    ...{ fast: true, alone: true },
    async run(arena) {
      const { stack, programs, random } = arena;
      const [api] = await Promise.all([
        arena.start('api', { env: REPLY_TIMEOUT }),
        arena.start('worker', { env: REPLY_TIMEOUT }),
        arena.start('keeper', { env: REPLY_TIMEOUT }),
      ]);
      const { saleId } = await arena.openSale({ stock: 100_000 });
      const buyers = arena.buyers(saleId, [api]);
      const { opLog } = buyers;
      const load = buyers.startLoad({ parallel: 32, pauseMs: random.whole(10, 30), tries: 1 });
      const watched = buyers.watch(['load-0', 'load-1', 'load-2']);
      const before = random.whole(400, 800);
      await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
      const runId = async (): Promise<string> => /run_id:(\w+)/.exec(await stack.redis.redis.info('server'))?.[1] ?? '';
      const runIdBefore = await runId();

      const server = stack.servers.server('redis');
      await server.stop({ signal: 'SIGKILL' });
      await arena.bite('Redis was killed', () => server.pid() === null);
      const refusedBefore = opLog.count('fail');
      await arena.bite('buyers were refused', () => opLog.count('fail') > refusedBefore + 50);
      await server.start();
      await server.waitReady();
      arena.faultEnded();
      await arena.until('we are connected again', async () => (await runId()) !== runIdBefore);

      const okBefore = opLog.count('ok');
      await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 300, 20_000);
      await Promise.all([load.stop(), watched.stop()]);
      expectEqual(
        programs.running.map(({ name }) => name),
        ['api', 'worker', 'keeper'],
        'programs that run',
      );
      expectFields(await arena.rest(saleId), { failedRows: 0 }, 'nothing failed');
      await buyers.askAgain();
      const settled = await arena.rest(saleId);
      expectEqual(settled.rows, opLog.count('ok'), 'rows and buyers who heard yes');
    },
  },
];

// R8 and R9: Redis is silent, cut off, full, or may not write.

const REPLY_TIMEOUT_MS = 500;
/** Precheck, deduct and decide may each wait for a reply; the rest is a shared machine. */
const ANSWER_MAX_MS = 4 * REPLY_TIMEOUT_MS + 1500;
/** Far above what an event loop that is alive takes, also on a shared machine. */
const ALIVE_MAX_MS = 500;

interface Loaded {
  readonly api: Program;
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly proxy: TcpProxy;
}

/** All programs behind one proxy, and buyers who keep coming. */
async function underLoad(arena: Arena): Promise<Loaded> {
  const { proxy, env } = await arena.proxy('redis');
  const more = { env: { ...env, REDIS_REPLY_TIMEOUT_MS: String(REPLY_TIMEOUT_MS) } };
  const [api] = await Promise.all([arena.start('api', more), arena.start('worker', more), arena.start('keeper', more)]);
  const { saleId } = await arena.openSale({ stock: 100_000 });
  const buyers = arena.buyers(saleId, [api]);
  buyers.startLoad({ parallel: 16, pauseMs: arena.random.whole(10, 30), tries: 1 });
  buyers.watch(['load-0', 'load-1', 'load-2']);
  await arena.until('the load is on', () => buyers.opLog.count('ok') > arena.random.whole(100, 200), 30_000);
  return { api, saleId, buyers, proxy };
}

/** @returns ms until a purchase was answered, and until `/healthz` was, which asks nobody */
async function timeAnswers(api: Program, buyers: Buyers, userId: string): Promise<[status: number, number, number]> {
  const startedMs = performance.now();
  const bought = buyers.buy(userId).then((answer) => [answer?.status ?? 0, performance.now() - startedMs] as const);
  expectEqual((await ask(`${api.url}/healthz`)).status, 200, '/healthz');
  const healthMs = performance.now() - startedMs;
  const [status, boughtMs] = await bought;
  return [status, boughtMs, healthMs];
}

/**
 * The same programs sell again, and each yes has its order.
 * @param epoch 1: nobody thought that anything was lost; 2: the sale was repaired once
 */
async function expectServedAgain(arena: Arena, { saleId, buyers }: Loaded, epoch: 1 | 2 = 1): Promise<void> {
  const { opLog } = buyers;
  if (epoch === 2) await repaired(arena.stack, saleId);
  const okBefore = opLog.count('ok');
  await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 100, 30_000);
  await buyers.close();
  await buyers.askAgain();
  expectFields(await arena.rest(saleId), { failedRows: 0, rows: opLog.count('ok') }, 'an order for each yes');
  expectFields(await standingOf(arena.stack, saleId), { epoch, state: 'open', sameServer: true }, 'the sale');
}

interface Silence {
  readonly variant: string;
  readonly what: string;
  readonly begin: (arena: Arena, proxy: TcpProxy) => void;
  readonly end: (arena: Arena, proxy: TcpProxy) => void;
}

const SILENCES: readonly Silence[] = [
  {
    ...{ variant: 'stopped', what: 'Redis stands still (SIGSTOP)' },
    begin: ({ stack }) => void stack.servers.server('redis').kill('SIGSTOP'),
    end: ({ stack }) => void stack.servers.server('redis').kill('SIGCONT'),
  },
  {
    ...{ variant: 'half_open', what: 'connections to Redis are accepted and nothing passes' },
    begin: (_, proxy) => proxy.fallSilent(),
    end: (_, proxy) => proxy.speak(),
  },
];

const SILENT: readonly Row[] = SILENCES.map(({ variant, what, begin, end }) => ({
  ...{ id: 'R8', variant },
  title: `${what}: a quick 503, the api is alive, and serves again afterwards; open batches end by check-back`,
  ...{ fast: false, alone: true },
  async run(arena) {
    const loaded = await underLoad(arena);
    const { api, buyers, proxy } = loaded;
    begin(arena, proxy);
    await arena.until('the api notices', async () => (await buyers.buy('first'))?.status === 503, 20_000);
    const unserved: boolean[] = [];
    for (let time = 0; time < 4; time++) {
      const [status, boughtMs, healthMs] = await timeAnswers(api, buyers, `silent-${time}`);
      unserved.push(status === 503);
      expectBelow(boughtMs, ANSWER_MAX_MS, 'ms until a purchase was answered');
      expectBelow(healthMs, ALIVE_MAX_MS, 'ms until /healthz was answered');
    }
    await arena.bite('purchases were answered 503', () => unserved.every((one) => one));
    end(arena, proxy);
    arena.faultEnded();
    await expectServedAgain(arena, loaded);
  },
}));

const RESETS: Row = {
  ...{ id: 'R8', variant: 'reset' },
  title: 'every connection to Redis is reset, again and again: the same programs go on, no unit is taken twice',
  ...{ fast: false, alone: true },
  async run(arena) {
    const loaded = await underLoad(arena);
    const { proxy } = loaded;
    const connectionsBefore = proxy.connections;
    for (let time = 0; time < 5; time++) {
      const { connections } = proxy;
      proxy.reset();
      await arena.until('they come back', () => proxy.connections >= connections + 3, 10_000);
    }
    await arena.bite('connections were made anew', () => proxy.connections >= connectionsBefore + 15);
    arena.faultEnded();
    await expectServedAgain(arena, loaded);
  },
};

interface Refusal {
  readonly variant: string;
  readonly what: string;
  /** How the error of a write begins. */
  readonly word: string;
  readonly begin: (arena: Arena) => Promise<unknown>;
  readonly end: (arena: Arena) => Promise<unknown>;
  /** Afterwards nobody can tell whether Redis lost something: each sale is repaired. */
  readonly needsRepair?: true;
}

const set = ({ stack }: Arena, name: string, value: string): Promise<unknown> =>
  stack.redis.masters()[0]?.config('SET', name, value) ?? Promise.reject(new Error('no connection'));
/** A folder where the snapshot should be: it cannot be saved. */
const snapshot = ({ stack }: Arena): string => join(stackPaths(stack.servers.dir).data('redis'), 'dump.rdb');

const REFUSALS: readonly Refusal[] = [
  {
    ...{ variant: 'full', what: 'maxmemory is reached', word: 'OOM' },
    begin: (arena) => set(arena, 'maxmemory', '1'),
    end: (arena) => set(arena, 'maxmemory', '0'),
  },
  {
    ...{ variant: 'read_only', what: 'Redis became a replica', word: 'READONLY' },
    begin: ({ stack }) => stack.redis.masters()[0]?.replicaof('127.0.0.1', 1) ?? Promise.resolve(),
    end: ({ stack }) => stack.redis.masters()[0]?.replicaof('NO', 'ONE') ?? Promise.resolve(),
    needsRepair: true, // a replica that was promoted may lack what its primary had confirmed
  },
  {
    ...{ variant: 'no_replicas', what: 'Redis misses its replicas', word: 'NOREPLICAS' },
    begin: (arena) => set(arena, 'min-replicas-to-write', '1'),
    end: (arena) => set(arena, 'min-replicas-to-write', '0'),
  },
  {
    ...{ variant: 'misconf', what: 'Redis cannot save its snapshot', word: 'MISCONF' },
    async begin(arena) {
      const { redis } = arena.stack.redis;
      rmSync(snapshot(arena), { force: true }); // a replica that was filled left one; the log is what counts
      mkdirSync(snapshot(arena));
      await set(arena, 'save', '3600 1000000');
      await redis.bgsave();
      await arena.until('saving failed', async () =>
        /rdb_last_bgsave_status:err/.test(await redis.info('persistence')),
      );
    },
    async end(arena) {
      await set(arena, 'save', '');
      rmdirSync(snapshot(arena));
    },
  },
];

const REFUSED: readonly Row[] = REFUSALS.map(({ variant, what, word, begin, end, needsRepair }) => ({
  ...{ id: 'R9', variant },
  title: `${what}: an error before the first write, 503, nothing is half done`,
  ...{ fast: false, alone: true },
  async run(arena) {
    const { redis } = arena.stack.redis;
    const loaded = await underLoad(arena);
    const { buyers } = loaded;
    await begin(arena);
    try {
      const refusal = await redis.set('sk:probe', '1').then(String, (error: Error) => error.message);
      await arena.bite(`writes are refused: ${word}`, () => refusal.startsWith(word));
      await arena.until('purchases are answered 503', async () => (await buyers.buy('first'))?.status === 503, 20_000);
      for (let time = 0; time < 5; time++) {
        expectEqual((await buyers.buy(`refused-${time}`))?.status, 503, 'the answer to a purchase');
      }
    } finally {
      await end(arena);
    }
    arena.faultEnded();
    await expectServedAgain(arena, loaded, needsRepair ? 2 : 1);
  },
}));

const EVICTS: Row = {
  ...{ id: 'R9', variant: 'evicts' },
  title: 'Redis may evict keys: no program starts',
  ...{ fast: false, alone: true, books: 'none' },
  async run(arena) {
    await set(arena, 'maxmemory-policy', 'allkeys-lru');
    try {
      const refusals = await Promise.all(
        (['api', 'worker', 'keeper'] as const).map((name) =>
          arena.start(name).then(
            () => false,
            () => true,
          ),
        ),
      );
      const named = arena.programs.all.every(({ log }) => log.includes('noeviction'));
      await arena.bite('each refused to start, and said why', () => refusals.every((one) => one) && named);
    } finally {
      await set(arena, 'maxmemory-policy', 'noeviction');
    }
    arena.faultEnded();
    await arena.start('api');
    expectTrue(arena.programs.running.length === 1, 'an api starts afterwards');
  },
};

export const REDIS_SCENARIOS: readonly Row[] = [...SILENT, RESETS, ...REFUSED, EVICTS, ...REDIS_ROWS];
