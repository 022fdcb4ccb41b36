import type { ScenarioContext } from '../context.js';
import type { Buyers } from '../harness/buyers.js';
import { expectBelow, expectEqual, expectFields } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { SHORT_TIMES, type Program } from '../harness/programs.js';
import { bucketStatusOf, untilRebuilt } from '../harness/redis.js';
import type { TcpProxy } from '../harness/tcp-proxy.js';
import type { Scenario } from '../scenario.js';

// R1, R8: Redis is killed, silent or cut off, and loses nothing.

const REPLY_TIMEOUT_MS = Number(SHORT_TIMES.REDIS_REPLY_TIMEOUT_MS);
/** Precheck, deduct and resolve may each wait for a reply, with a margin for a shared machine. */
const ANSWER_MAX_MS = 4 * REPLY_TIMEOUT_MS + 1500;
/** Exceeds the delay of a live event loop, even on a shared machine. */
const ALIVE_MAX_MS = 500;

const KILLED: Scenario = {
  name: 'R1',
  title: 'Redis is killed under load and restarts with its log: the same programs continue and lose nothing',
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
 * Asserts that the same programs sell again, and that each accepted purchase has its order.
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
  title: `${what}: buyers get a quick 503, open batches end, and the api serves again`,
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
  title: 'every connection to Redis is reset five times: the same programs continue and take no unit twice',
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

export const REDIS_SCENARIOS: readonly Scenario[] = [KILLED, ...SILENT, RESETS];
