import { mkdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import type { ScenarioContext } from '../context.js';
import type { Buyers } from '../harness/buyers.js';
import { expectBelow, expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { SHORT_TIMES, type Program } from '../harness/programs.js';
import { bucketStatusOf, untilRebuilt } from '../harness/redis.js';
import type { TcpProxy } from '../harness/tcp-proxy.js';
import type { Scenario } from '../scenario.js';

// R1, R8, R9: Redis is killed, silent, cut off, full, or refuses writes, but loses nothing.

const REPLY_TIMEOUT_MS = Number(SHORT_TIMES.REDIS_REPLY_TIMEOUT_MS);
/** Precheck, deduct and resolve may each wait for a reply. The rest is a margin for a shared machine. */
const ANSWER_MAX_MS = 4 * REPLY_TIMEOUT_MS + 1500;
/** Far above the delay of a live event loop, even on a shared machine. */
const ALIVE_MAX_MS = 500;

const KILLED: Scenario = {
  name: 'R1',
  title: 'kill -9 of Redis under load and a restart with its log: nothing is lost, the same programs go on',
  fast: true,
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const { saleId, buyers } = await startSystem(context, { stock: 100_000 }, { all: SHORT_TIMES });
    const polling = buyers.pollStatus(['load-0', 'load-1', 'load-2']);
    const options = { parallel: 32, pauseMs: random.whole(10, 30), tries: 1 };
    const load = await buyers.startLoadUntil(options, random.whole(400, 800));
    const runId = async (): Promise<string> => /run_id:(\w+)/.exec(await stack.redis.redis.info('server'))?.[1] ?? '';
    const runIdBefore = await runId();

    const server = stack.servers.server('redis');
    await server.stop({ signal: 'SIGKILL' });
    await context.observed('Redis was killed', () => server.pid() === null);
    const refusedBefore = buyers.opLog.count('fail');
    await context.observed('buyers were refused', () => buyers.opLog.count('fail') > refusedBefore + 50);
    await server.start();
    await server.waitReady();
    context.faultEnded();
    await context.until('we are connected again', async () => (await runId()) !== runIdBefore);

    await buyers.untilAccepted(300, 'the same programs sell again');
    await Promise.all([load.stop(), polling.stop()]);
    context.expectRunning('api', 'worker', 'keeper');
    await context.expectFigures(saleId, { failedRows: 0 }, 'nothing failed');
    await expectRowPerAccepted(context, buyers);
  },
};

interface Loaded {
  readonly api: Program;
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly proxy: TcpProxy;
}

/** All programs behind one proxy, and a steady stream of buyers. */
async function startUnderLoad(context: ScenarioContext): Promise<Loaded> {
  const { proxy, env } = await context.proxy('redis');
  const { api, saleId, buyers } = await startSystem(context, { stock: 100_000 }, { all: { ...env, ...SHORT_TIMES } });
  buyers.pollStatus(['load-0', 'load-1', 'load-2']);
  const load = { parallel: 16, pauseMs: context.random.whole(10, 30), tries: 1 };
  await buyers.startLoadUntil(load, context.random.whole(100, 200));
  return { api, saleId, buyers, proxy };
}

/**
 * The same programs must sell again, and each accepted purchase must have its order.
 * @param epoch 1: no loss was suspected; 2: the sale was repaired once
 */
async function expectServedAgain(
  context: ScenarioContext,
  { saleId, buyers }: Loaded,
  epoch: 1 | 2 = 1,
): Promise<void> {
  if (epoch === 2) await untilRebuilt(context.stack, saleId);
  await buyers.untilAccepted(100, 'the same programs sell again');
  await buyers.close();
  await expectRowPerAccepted(context, buyers, { failedRows: 0 });
  expectFields(await bucketStatusOf(context.stack, saleId), { epoch, state: 'open', sameServer: true }, 'the sale');
}

interface Silence {
  readonly variant: string;
  readonly what: string;
  readonly start: (context: ScenarioContext, proxy: TcpProxy) => void;
  readonly end: (context: ScenarioContext, proxy: TcpProxy) => void;
}

const SILENCES: readonly Silence[] = [
  {
    variant: 'stopped',
    what: 'Redis stalls (SIGSTOP)',
    start: ({ stack }) => void stack.servers.server('redis').kill('SIGSTOP'),
    end: ({ stack }) => void stack.servers.server('redis').kill('SIGCONT'),
  },
  {
    variant: 'half_open',
    what: 'connections to Redis are open and nothing passes',
    start: (_, proxy) => proxy.stall(),
    end: (_, proxy) => proxy.resume(),
  },
];

const SILENT = SILENCES.map(({ variant, what, start, end }): Scenario => ({
  name: `R8/${variant}`,
  title: `${what}: a quick 503, the api serves again afterwards, open batches end`,
  alone: true,
  async run(context) {
    const loaded = await startUnderLoad(context);
    const { api, buyers, proxy } = loaded;
    start(context, proxy);
    await context.until('the api notices', async () => (await buyers.buy('first'))?.status === 503);
    const refused: boolean[] = [];
    for (let time = 0; time < 4; time++) {
      const startedMs = performance.now();
      const elapsedMs = (): number => performance.now() - startedMs;
      const bought = buyers.buy(`silent-${time}`).then((answer) => [answer?.status, elapsedMs()] as const);
      expectEqual((await ask(`${api.url}/healthz`)).status, 200, '/healthz, which needs no server');
      expectBelow(elapsedMs(), ALIVE_MAX_MS, 'ms until /healthz was answered');
      const [status, boughtMs] = await bought;
      expectBelow(boughtMs, ANSWER_MAX_MS, 'ms until a purchase was answered');
      refused.push(status === 503);
    }
    await context.observed('purchases were answered 503', () => refused.every((one) => one));
    end(context, proxy);
    context.faultEnded();
    await expectServedAgain(context, loaded);
  },
}));

const RESETS: Scenario = {
  name: 'R8/reset',
  title: 'every connection to Redis is reset five times: the same programs go on, no unit is taken twice',
  alone: true,
  async run(context) {
    const loaded = await startUnderLoad(context);
    const { proxy } = loaded;
    const connectionsBefore = proxy.connections;
    for (let time = 0; time < 5; time++) {
      const { connections } = proxy;
      proxy.reset();
      await context.until('they connect again', () => proxy.connections >= connections + 3);
    }
    await context.observed('connections were made anew', () => proxy.connections >= connectionsBefore + 15);
    context.faultEnded();
    await expectServedAgain(context, loaded);
  },
};

interface Refusal {
  readonly variant: string;
  readonly what: string;
  /** The beginning of the error of a write. */
  readonly word: string;
  readonly start: (context: ScenarioContext) => Promise<unknown>;
  readonly end: (context: ScenarioContext) => Promise<unknown>;
  /** Afterwards Redis may have lost something, so each sale is repaired. */
  readonly needsRepair?: true;
}

const setConfig = ({ stack }: ScenarioContext, name: string, value: string): Promise<unknown> =>
  stack.redis.masters()[0]?.config('SET', name, value) ?? Promise.reject(new Error('no connection'));
/** A folder takes the place of the snapshot, so that saving fails. */
const snapshotFile = ({ stack }: ScenarioContext): string =>
  join(stackPaths(stack.servers.dir).data('redis'), 'dump.rdb');

const REFUSALS: readonly Refusal[] = [
  {
    variant: 'full',
    what: 'maxmemory is reached',
    word: 'OOM',
    start: (context) => setConfig(context, 'maxmemory', '1'),
    end: (context) => setConfig(context, 'maxmemory', '0'),
  },
  {
    variant: 'read_only',
    what: 'Redis became a replica',
    word: 'READONLY',
    start: ({ stack }) => stack.redis.masters()[0]?.replicaof('127.0.0.1', 1) ?? Promise.resolve(),
    end: ({ stack }) => stack.redis.masters()[0]?.replicaof('NO', 'ONE') ?? Promise.resolve(),
    needsRepair: true, // a promoted replica may lack writes that its primary had confirmed
  },
  {
    variant: 'no_replicas',
    what: 'Redis misses its replicas',
    word: 'NOREPLICAS',
    start: (context) => setConfig(context, 'min-replicas-to-write', '1'),
    end: (context) => setConfig(context, 'min-replicas-to-write', '0'),
  },
  {
    variant: 'misconf',
    what: 'Redis cannot save its snapshot',
    word: 'MISCONF',
    async start(context) {
      const { redis } = context.stack.redis;
      rmSync(snapshotFile(context), { force: true }); // a full sync of a replica left one, but the log is what counts
      mkdirSync(snapshotFile(context));
      await setConfig(context, 'save', '3600 1000000');
      await redis.bgsave();
      const hasFailed = async (): Promise<boolean> =>
        /rdb_last_bgsave_status:err/.test(await redis.info('persistence'));
      await context.until('saving failed', hasFailed);
    },
    async end(context) {
      await setConfig(context, 'save', '');
      rmdirSync(snapshotFile(context));
    },
  },
];

const REFUSED = REFUSALS.map(({ variant, what, word, start, end, needsRepair }): Scenario => ({
  name: `R9/${variant}`,
  title: `${what}: an error before the first write, 503, nothing is half done`,
  alone: true,
  async run(context) {
    const { redis } = context.stack.redis;
    const loaded = await startUnderLoad(context);
    const { buyers } = loaded;
    await start(context);
    try {
      const refusal = await redis.set('sk:probe', '1').then(String, (error: Error) => error.message);
      await context.observed(`writes are refused: ${word}`, () => refusal.startsWith(word));
      const is503 = async (): Promise<boolean> => (await buyers.buy('first'))?.status === 503;
      await context.until('purchases are answered 503', is503);
      for (let time = 0; time < 5; time++) {
        expectEqual((await buyers.buy(`refused-${time}`))?.status, 503, 'the answer to a purchase');
      }
    } finally {
      await end(context);
    }
    context.faultEnded();
    await expectServedAgain(context, loaded, needsRepair ? 2 : 1);
  },
}));

const EVICTS: Scenario = {
  name: 'R9/evicts',
  title: 'Redis may evict keys: no program starts',
  alone: true,
  noSale: true,
  async run(context) {
    await setConfig(context, 'maxmemory-policy', 'allkeys-lru');
    try {
      const names = ['api', 'worker', 'keeper'] as const;
      const refusals = await Promise.all(names.map((name) => context.startRefused(name)));
      const explained = context.programs.all.every(({ log }) => log.includes('noeviction'));
      await context.observed('each refused to start, and said why', () => refusals.every((one) => one) && explained);
    } finally {
      await setConfig(context, 'maxmemory-policy', 'noeviction');
    }
    context.faultEnded();
    await context.start('api');
    expectTrue(context.programs.running.length === 1, 'an api starts afterwards');
  },
};

export const REDIS_SCENARIOS: readonly Scenario[] = [KILLED, ...SILENT, RESETS, ...REFUSED, EVICTS];
