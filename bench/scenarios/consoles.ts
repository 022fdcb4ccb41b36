import { get, type ClientRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTokenSigner } from '../../src/http/token.js';
import { BenchError } from '../bench-error.js';
import { runOpenLoop } from '../load/open-loop.js';
import { cpuTimes, median } from '../session/cpu.js';
import type { Session } from '../session/session.js';
import { assertPassed, checkSaleOf, dueRateOf, opLogOf, secondsOf, type Context } from './context.js';

/** What consoles that follow `GET /admin/v1/live` cost the api. */
export interface ConsolesFigures {
  readonly kind: 'consoles';
  readonly scenario: 'consoles';
  /** How many were open at once. */
  readonly consoles: number;
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
}

const CONSOLES = 50;
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
  session.progress(`consoles: ${CONSOLES} or none, in turn, ${options.pairs} pairs, ${rate} requests/s`);
  const pairs: ConsolesPair[] = [];
  for (let index = 0; index < options.pairs; index++) pairs.push(await measurePair(context, index % 2 === 0));
  const addedPercent = median(pairs.map(({ withPercent, withoutPercent }) => withPercent - withoutPercent));
  return { kind: 'consoles', scenario: 'consoles', consoles: CONSOLES, rate, pairs, addedPercent };
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
  const stop = new AbortController();
  const signal = AbortSignal.any([session.signal, stop.signal]);
  let isOver = false;
  const load = runOpenLoop({ port, path, buyers, connections: options.connections, seconds, rate }, signal);
  load.finally(() => (isOver = true)).catch(() => undefined); // it is awaited below
  let pair: ConsolesPair;
  try {
    const first = noneFirst ? await sliceWithout(session, sliceSeconds, signal) : null;
    const { withPercent, snapshotsPerSecond } = await sliceWith(session, sliceSeconds, signal);
    const withoutPercent = first ?? (await sliceWithout(session, sliceSeconds, signal));
    if (isOver) throw new BenchError('the load of consoles ended before its slices; is the machine too busy?');
    pair = { withoutPercent, withPercent, snapshotsPerSecond };
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
  seconds: number,
  signal: AbortSignal,
): Promise<Omit<ConsolesPair, 'withoutPercent'>> {
  const { pid, operatorsPort: port } = session.program('api');
  const secret = session.stack.env().JWT_SECRET;
  const token = createTokenSigner(secret)({ userId: 'bench', roles: ['viewer'], ttlMs: TOKEN_TTL_MS });
  const open = await Consoles.open(CONSOLES, { port, token });
  try {
    await sleep(SETTLE_MS, undefined, { signal });
    const [before, beganMs] = [open.snapshots, performance.now()];
    const withPercent = await cpuPercent(pid, seconds, signal);
    open.assertOpen();
    const tookSeconds = (performance.now() - beganMs) / 1000;
    return { withPercent, snapshotsPerSecond: (open.snapshots - before) / CONSOLES / tookSeconds };
  } finally {
    open.close();
  }
}

async function cpuPercent(pid: number, seconds: number, signal: AbortSignal): Promise<number> {
  const [cpuBefore, startedMs] = [cpuTimes(pid)?.own ?? 0, performance.now()];
  await sleep(seconds * 1000, undefined, { signal });
  return (((cpuTimes(pid)?.own ?? 0) - cpuBefore) / ((performance.now() - startedMs) / 1000)) * 100;
}

/** Streams of `GET /admin/v1/live`, read and thrown away. */
class Consoles {
  /** Over all of them. */
  snapshots = 0;
  readonly #requests: ClientRequest[] = [];
  #ended = 0;

  /** @throws BenchError when one is not answered 200 in time; then none is left open */
  static async open(count: number, where: { readonly port: number; readonly token: string }): Promise<Consoles> {
    const consoles = new Consoles();
    try {
      await Promise.all(Array.from({ length: count }, () => consoles.#follow(where)));
      return consoles;
    } catch (error) {
      consoles.close();
      throw error;
    }
  }

  #follow({ port, token }: { readonly port: number; readonly token: string }): Promise<void> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      const request = get({ host: '127.0.0.1', port, path: '/admin/v1/live', headers, agent: false }, (response) => {
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
      this.#requests.push(request);
    });
  }

  /** @throws BenchError when one was closed by the api: then fewer were measured */
  assertOpen(): void {
    if (this.#ended > 0) throw new BenchError(`the api closed ${this.#ended} streams of consoles`);
  }

  close(): void {
    for (const request of this.#requests) request.destroy();
  }
}
