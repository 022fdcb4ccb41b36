import { BenchError } from '../bench-error.js';
import { headersAt, readRecords } from '../load/buyers.js';
import { runClosedLoop } from '../load/closed-loop.js';
import { PURCHASE_BODY } from '../load/load.js';
import { cpuTimes } from '../session/cpu.js';
import type { ProcessName } from '../session/session.js';
import { rulesAdminOf, secondsOf, type Context } from './context.js';
import type { Limit, LimitFigures } from './limits.js';

const SERVERS: readonly ProcessName[] = ['redis', 'mariadb', 'broker'];
const WARM_UP_SECONDS = 1;
const ORDER_WAIT_SECONDS = 30;

interface Read {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Expected status. Default: 200. */
  readonly status?: number;
}

/**
 * Measures each read of an open page alone, as fast as one api can answer it, with the same request on all connections.
 */
export async function crowd(context: Context): Promise<LimitFigures> {
  const { session } = context;
  const sale = await session.stores.openSale('crowd', 10);
  const path = `/v1/sales/${sale.saleId}`;
  const buyers = context.buyers.take(1);
  const buyer = headersAt(readRecords(buyers), buyers.recordBytes, 0);
  const own = { Authorization: buyer.Authorization ?? '' };
  const purchase = `${path}/purchases/${buyer['Idempotency-Key']}`;
  await ask(context, `${path}/purchases`, 'POST', { ...buyer, 'Content-Type': 'application/json' }, PURCHASE_BODY);
  await (await ask(context, `${purchase}?wait=${ORDER_WAIT_SECONDS}`, 'GET', own)).arrayBuffer();

  const page = `/s/${sale.saleId}`; // made by `npm run build:web`
  const script = /"(\/s\/assets\/[^"]+\.js)"/.exec(await (await ask(context, page)).text())?.[1] ?? '';

  const limits: Limit[] = [];
  const add = async (name: string, read: Read): Promise<void> => void limits.push(await measured(context, name, read));
  await add('sale', { path });
  await add('sale, 304', { path, headers: { 'If-None-Match': '*' }, status: 304 });
  await add('sale, fresh', { path: `${path}?fresh=1` });
  await add('own purchase', { path: purchase, headers: own });
  await add('own orders', { path: '/v1/me/orders', headers: own });
  await add('page', { path: page, headers: { 'Accept-Encoding': 'gzip' } });
  await add('script of the page', { path: script, headers: { 'Accept-Encoding': 'gzip' } });
  // Everyone waits, and a ticket outlives the load.
  await rulesAdminOf(session).during({ queue: { mode: 'on', admitPerSecond: 0, idleMs: 3_600_000 } }, async () => {
    const joined = await ask(context, `${path}/queue`, 'POST', own);
    const { ticket } = (await joined.json()) as { readonly ticket: string };
    await add('place in the waiting room', { path: `${path}/queue/${ticket}`, headers: own });
  });
  return { kind: 'limits', scenario: 'crowd', limits };
}

const urlOf = ({ session }: Context, path: string): string => `http://127.0.0.1:${session.program('api').port}${path}`;

/** @throws BenchError if the request is refused */
async function ask(context: Context, path: string, method = 'GET', headers = {}, body?: string): Promise<Response> {
  const response = await fetch(urlOf(context, path), { method, headers, ...(body === undefined ? {} : { body }) });
  if (!response.ok) throw new BenchError(`${method} ${path} was answered ${response.status}: ${await response.text()}`);
  return response;
}

async function measured(context: Context, name: string, { path, headers = {}, status = 200 }: Read): Promise<Limit> {
  const { session, options } = context;
  const { port } = session.program('api');
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    ...Object.entries(headers).map(([k, v]) => `${k}: ${v}`),
  ];
  const plan = { port, connections: options.connections, request: `${lines.join('\r\n')}\r\n\r\n` };
  const secondsOfCpu = (names: readonly ProcessName[]): number =>
    names.reduce((sum, one) => sum + (cpuTimes(session.pids()[one])?.own ?? 0), 0);
  session.progress(`crowd: ${name}`);
  await runClosedLoop({ ...plan, seconds: WARM_UP_SECONDS }, session.signal);
  const [apiBefore, serversBefore] = [secondsOfCpu(['api']), secondsOfCpu(SERVERS)];
  const load = await runClosedLoop({ ...plan, seconds: secondsOf(context, 'crowd') }, session.signal);
  const [apiSeconds, serverSeconds] = [secondsOfCpu(['api']) - apiBefore, secondsOfCpu(SERVERS) - serversBefore];
  const { sent, answered, accepted, startedAtMs, endedAtMs } = load;
  const answer = await fetch(urlOf(context, path), { headers });
  if (answer.status !== status) throw new BenchError(`${name} was answered ${answer.status}: ${await answer.text()}`);
  const good = status < 300 ? accepted : answered - accepted;
  if (good === 0) throw new BenchError(`every request for ${name} was refused under load`);
  if (good < sent) session.progress(`crowd: ${name}: ${sent - good} of ${sent} requests were refused`);
  const micros = (seconds: number): number => (seconds * 1e6) / good;
  return {
    name,
    unit: 'answers/s',
    perSecond: good / ((endedAtMs - startedAtMs) / 1000),
    micros: { api: micros(apiSeconds), servers: micros(serverSeconds) },
  };
}
