import { setMaxListeners } from 'node:events';
import { Agent, get, type ClientRequest, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTokenSigner } from '../../src/http/token.js';
import { BenchError } from '../bench-error.js';
import { purchaseKeyAt, readRecords } from '../load/buyers.js';
import { runOpenLoop } from '../load/open-loop.js';
import { cpuTimes, median } from '../session/cpu.js';
import type { Session } from '../session/session.js';
import { assertPassed, checkSaleOf, dueRateOf, opLogOf, secondsOf, type Context } from './context.js';

/** What open consoles cost the api: all follow `GET /admin/v1/live`, and each asks what its screen shows. */
export interface ConsolesFigures {
  readonly kind: 'consoles';
  readonly scenario: 'consoles';
  /** How many were open at once, and on which screens. */
  readonly consoles: number;
  readonly mix: string;
  /** Requests of buyers per second meanwhile. */
  readonly rate: number;
  readonly pairs: readonly ConsolesPair[];
  /** Median over the pairs of what they add. */
  readonly addedPercent: number;
}

/** Two slices after one another. CPU of the api in percent of one core. */
interface ConsolesPair {
  readonly withoutPercent: number;
  readonly withPercent: number;
  /** Snapshots that each console got per second. */
  readonly snapshotsPerSecond: number;
  /** What all of them asked besides. */
  readonly requestsPerSecond: number;
}

/** What consoles on one screen ask again and again, besides the stream: as in web/console/screens. */
interface Screen {
  readonly name: string;
  readonly consoles: number;
  readonly asks: readonly (readonly [path: string, everyMs: number])[];
}

/** The sale, and the purchase, that the load makes meanwhile. */
interface Watched {
  readonly saleId: string;
  readonly userId: string;
  readonly requestId: string;
}

const screensOf = ({ saleId, userId, requestId }: Watched): readonly Screen[] => [
  { name: 'Live', consoles: 35, asks: [] },
  {
    name: 'a sale',
    consoles: 6,
    asks: [
      [`/admin/v1/sales/${saleId}`, 15_000],
      [`/admin/v1/sales/${saleId}/buckets`, 10_000],
      ['/admin/v1/breakers', 15_000],
      [`/admin/v1/orders?sale=${saleId}&limit=20`, 15_000],
      [`/admin/v1/audit?subject=sale%3A${saleId}&limit=10`, 30_000],
      ['/admin/v1/rules', 60_000],
    ],
  },
  { name: 'Messages, lag', consoles: 1, asks: [['/admin/v1/mq/status', 5_000]] },
  { name: 'Messages, halves', consoles: 1, asks: [['/admin/v1/mq/halves', 4_000]] },
  {
    name: 'Messages, clients',
    consoles: 1,
    asks: [
      ['/admin/v1/mq/producers', 10_000],
      ['/admin/v1/mq/consumers?group=seckill-order-writer', 10_000],
    ],
  },
  {
    name: 'Health',
    consoles: 3,
    asks: [
      ['/readyz', 10_000],
      ['/admin/v1/breakers', 15_000],
      ['/admin/v1/mq/status', 10_000],
      ['/admin/v1/rules/status', 15_000],
    ],
  },
  {
    name: 'a purchase',
    consoles: 3,
    asks: [[`/admin/v1/requests/${requestId}?saleId=${saleId}&userId=${userId}`, 20_000]],
  },
];

const SCREENS = screensOf({ saleId: '', userId: '', requestId: '' });
const CONSOLES = SCREENS.reduce((sum, screen) => sum + screen.consoles, 0);
const MIX = SCREENS.map((screen) => `${screen.consoles} on ${screen.name}`).join('; ');
/** Before a slice: what connecting and closing costs is not what following costs. */
const SETTLE_MS = 1500;
/** The load of a pair begins before its first slice and outlasts its second one, also on a busy machine. */
const MARGIN_SECONDS = 5;
const TOKEN_TTL_MS = 3_600_000;
const CONNECT_TIMEOUT_MS = 10_000;

/** Seconds of load of a pair: two slices, and what lies around them. */
const loadSeconds = (sliceSeconds: number): number => 2 * (sliceSeconds + SETTLE_MS / 1000) + MARGIN_SECONDS;

/** Buyers that one run needs. */
export const consolesBuyers = (context: Pick<Context, 'options'>): number =>
  context.options.pairs * loadSeconds(secondsOf(context, 'consoles')) * dueRateOf(context, 'consoles');

/** Buyers come at a steady rate while, slice by slice in turn, nobody and many consoles follow. */
export async function consoles(context: Context): Promise<ConsolesFigures> {
  const { session, options } = context;
  const rate = dueRateOf(context, 'consoles');
  session.progress(`consoles: ${CONSOLES} (${MIX}) or none, in turn, ${options.pairs} pairs, ${rate} requests/s`);
  const pairs: ConsolesPair[] = [];
  for (let index = 0; index < options.pairs; index++) pairs.push(await measurePair(context, index % 2 === 0));
  const addedPercent = median(pairs.map(({ withPercent, withoutPercent }) => withPercent - withoutPercent));
  return { kind: 'consoles', scenario: 'consoles', consoles: CONSOLES, mix: MIX, rate, pairs, addedPercent };
}

/** @throws BenchError when the load ended before both slices were measured, or the check of its sale fails */
async function measurePair(context: Context, noneFirst: boolean): Promise<ConsolesPair> {
  const { session, options } = context;
  const [sliceSeconds, rate] = [secondsOf(context, 'consoles'), dueRateOf(context, 'consoles')];
  const seconds = loadSeconds(sliceSeconds);
  const buyers = context.buyers.take(rate * seconds);
  const sale = await session.stores.openSale('consoles', buyers.count);
  const path = `/v1/sales/${sale.saleId}/purchases`;
  const { port } = session.program('api');
  const [userId, requestId] = purchaseKeyAt(readRecords(buyers), buyers, 0).split('/') as [string, string];
  const watched = { saleId: sale.saleId, userId, requestId };
  const stop = new AbortController();
  const signal = AbortSignal.any([session.signal, stop.signal]);
  let isOver = false;
  const load = runOpenLoop({ port, path, buyers, connections: options.connections, seconds, rate }, signal);
  load.finally(() => (isOver = true)).catch(() => undefined); // it is awaited below
  let pair: ConsolesPair;
  try {
    const first = noneFirst ? await sliceWithout(session, sliceSeconds, signal) : null;
    const withConsoles = await sliceWith(session, watched, sliceSeconds, signal);
    const withoutPercent = first ?? (await sliceWithout(session, sliceSeconds, signal));
    if (isOver) throw new BenchError('the load of consoles ended before its slices; is the machine too busy?');
    pair = { withoutPercent, ...withConsoles };
  } catch (error) {
    stop.abort(error);
    throw error;
  }
  const done = await load;
  assertPassed(await checkSaleOf(context, sale, [done], opLogOf(buyers, done.outcomes)), 'the load of consoles');
  session.progress(`consoles: ${pair.withoutPercent.toFixed(2)} % without, ${pair.withPercent.toFixed(2)} % with`);
  await session.stores.empty();
  return pair;
}

async function sliceWithout(session: Session, seconds: number, signal: AbortSignal): Promise<number> {
  await sleep(SETTLE_MS, undefined, { signal });
  return cpuPercent(session.program('api').pid, seconds, signal);
}

async function sliceWith(
  session: Session,
  watched: Watched,
  seconds: number,
  signal: AbortSignal,
): Promise<Omit<ConsolesPair, 'withoutPercent'>> {
  const { pid, operatorsPort: port } = session.program('api');
  const secret = session.stack.env().JWT_SECRET;
  const token = createTokenSigner(secret)({ userId: 'bench', roles: ['viewer'], ttlMs: TOKEN_TTL_MS });
  const open = await Consoles.open(screensOf(watched), { port, token });
  try {
    await sleep(SETTLE_MS, undefined, { signal });
    open.beginToAsk();
    const [before, beganMs] = [open.snapshots, performance.now()];
    const withPercent = await cpuPercent(pid, seconds, signal);
    open.assertWell();
    const tookSeconds = (performance.now() - beganMs) / 1000;
    return {
      withPercent,
      snapshotsPerSecond: (open.snapshots - before) / CONSOLES / tookSeconds,
      requestsPerSecond: open.answers / tookSeconds,
    };
  } finally {
    open.close();
  }
}

async function cpuPercent(pid: number, seconds: number, signal: AbortSignal): Promise<number> {
  const [cpuBefore, startedMs] = [cpuTimes(pid)?.own ?? 0, performance.now()];
  await sleep(seconds * 1000, undefined, { signal });
  return (((cpuTimes(pid)?.own ?? 0) - cpuBefore) / ((performance.now() - startedMs) / 1000)) * 100;
}

interface Where {
  readonly port: number;
  readonly token: string;
}

/** Consoles: streams of `GET /admin/v1/live` and answers to what their screens ask, read and thrown away. */
class Consoles {
  /** Over all of them. */
  snapshots = 0;
  answers = 0;
  readonly #screens: readonly Screen[];
  readonly #where: Where;
  readonly #streams: ClientRequest[] = [];
  /** As a browser: connections stay open. */
  readonly #agent = new Agent({ keepAlive: true });
  readonly #closed = new AbortController();
  #ended = 0;
  #fault: string | null = null;

  private constructor(screens: readonly Screen[], where: Where) {
    this.#screens = screens;
    this.#where = where;
    setMaxListeners(0, this.#closed.signal); // every question waits on it
  }

  /** @throws BenchError when a stream is not answered 200 in time; then none is left open */
  static async open(screens: readonly Screen[], where: Where): Promise<Consoles> {
    const consoles = new Consoles(screens, where);
    try {
      await Promise.all(Array.from({ length: CONSOLES }, () => consoles.#follow()));
      return consoles;
    } catch (error) {
      consoles.close();
      throw error;
    }
  }

  /** At random, and those on the same screen at even distances: people do not open them at the same moment. */
  beginToAsk(): void {
    for (const { consoles, asks } of this.#screens) {
      for (let index = 0; index < consoles; index++) {
        for (const [path, everyMs] of asks)
          void this.#keepAsking(path, everyMs, (everyMs * (index + Math.random())) / consoles);
      }
    }
  }

  #follow(): Promise<void> {
    return new Promise((resolve, reject) => {
      const request = this.#get('/admin/v1/live', false, (response) => {
        clearTimeout(late);
        if (response.statusCode !== 200) {
          reject(new BenchError(`GET /admin/v1/live was answered ${response.statusCode}`));
          return;
        }
        response.setEncoding('latin1');
        response.on('data', (text: string) => {
          this.snapshots += text.split('event: snapshot\n').length - 1;
        });
        response.on('error', () => undefined); // it is closed here
        response.on('close', () => void this.#ended++);
        resolve();
      });
      const late = setTimeout(() => {
        request.destroy(new BenchError(`GET /admin/v1/live was not answered within ${CONNECT_TIMEOUT_MS} ms`));
      }, CONNECT_TIMEOUT_MS);
      request.on('error', reject);
      this.#streams.push(request);
    });
  }

  async #keepAsking(path: string, everyMs: number, firstMs: number): Promise<void> {
    const { signal } = this.#closed;
    for (let pauseMs = firstMs; ; pauseMs = everyMs) {
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const status = await this.#ask(path);
      if (status === 200) this.answers++;
      else if (!signal.aborted) this.#fault ??= `GET ${path} was answered ${status ?? 'not at all'}`;
    }
  }

  /** @returns the status; null: there was no answer */
  #ask(path: string): Promise<number | null> {
    return new Promise((resolve) => {
      const request = this.#get(path, this.#agent, (response) => {
        response.resume();
        response.on('error', () => resolve(null));
        response.on('end', () => resolve(response.statusCode ?? null));
      });
      request.on('error', () => resolve(null));
    });
  }

  #get(path: string, agent: Agent | false, onResponse: (response: IncomingMessage) => void): ClientRequest {
    const headers = { authorization: `Bearer ${this.#where.token}`, 'accept-encoding': 'gzip' };
    return get({ host: '127.0.0.1', port: this.#where.port, path, headers, agent }, onResponse);
  }

  /** @throws BenchError when one was closed by the api, or an answer was none: then less was measured */
  assertWell(): void {
    if (this.#ended > 0) throw new BenchError(`the api closed ${this.#ended} streams of consoles`);
    if (this.#fault !== null) throw new BenchError(this.#fault);
  }

  close(): void {
    this.#closed.abort();
    for (const stream of this.#streams) stream.destroy();
    this.#agent.destroy();
  }
}
