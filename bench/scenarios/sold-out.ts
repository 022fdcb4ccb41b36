import { join } from 'node:path';
import { readKeyring } from '../../src/core/hmac.js';
import type { Sale } from '../../src/core/sale.js';
import { BenchError } from '../bench-error.js';
import { captureAnswer, startBareServer, type BareAnswer } from '../load/bare-http.js';
import { headersAt, readRecords, splitSlice, type BuyerSlice } from '../load/buyers.js';
import { credentialHeaders, withHeaders, type AdmissionKeys } from '../load/credentials.js';
import { runClosedLoop } from '../load/closed-loop.js';
import { PURCHASE_BODY, type LoadResult } from '../load/load.js';
import { loadFigures, type LoadFigures } from '../results.js';
import { BUYERS_PER_SECOND, checkSaleOf, closedLoop, rulesAdminOf, secondsOf, type Context } from './context.js';
import { cpuTimes } from '../session/cpu.js';

const STOCK = 100;
/** Time to sell the stock and warm up the path of a refusal. The bare server is warmed up for the same time. */
const FIRST_SECONDS = 3;

/**
 * Measures refusals of new buyers in a sale that is sold out. Just before and just after, the same load generator
 * requests the same answer from bare node:http, so that a busy moment of the machine affects both.
 */
export async function soldOut(context: Context): Promise<LoadFigures> {
  const { session, options } = context;
  const seconds = secondsOf(context, 'sold-out');
  const all = context.buyers.take(1 + (FIRST_SECONDS + seconds) * BUYERS_PER_SECOND.soldOut);
  const sale = await session.stores.openSale('sold-out', STOCK);
  if (options.admission === 'off') return refusals(context, sale, all, 'every admission layer is off');
  const { admissionKeys: keys } = session;
  session.progress(`sold-out: signing for ${all.count.toLocaleString('en')} buyers`);
  const headersOf = credentialHeaders(keys, sale.saleId, `/v1/sales/${sale.saleId}/purchases`);
  const buyers = await withHeaders(all, join(session.dir, 'sold-out.bin'), headersOf);
  const about = 'lists, limits, sign, queue, breaker, degrade on';
  return rulesAdminOf(session).during(allLayersOn(keys), () => refusals(context, sale, buyers, about));
}

async function refusals(context: Context, sale: Sale, all: BuyerSlice, layers: string): Promise<LoadFigures> {
  const { session, options } = context;
  const seconds = secondsOf(context, 'sold-out');
  const half = seconds / 2;
  const [first, later] = splitSlice(all, FIRST_SECONDS * BUYERS_PER_SECOND.soldOut);
  const [one, buyers] = splitSlice(later, 1);
  session.progress(`sold-out: selling ${STOCK} units`);
  const selling = await closedLoop(context, sale.saleId, { buyers: first, seconds: FIRST_SECONDS });

  const path = `/v1/sales/${sale.saleId}/purchases`;
  const bare = await startBareServer(await refusalOf(session.program('api').port, path, one));
  const askBare = (bareSeconds: number): Promise<LoadResult> => {
    session.progress(`sold-out: ${bareSeconds} s of bare node:http`);
    const plan = { port: bare.port, path, buyers, connections: options.connections, seconds: bareSeconds };
    return runClosedLoop(plan, session.signal);
  };
  try {
    await askBare(FIRST_SECONDS);
    const cpuBefore = cpuTimes(bare.pid)?.own ?? 0;
    const before = await askBare(half);
    session.progress(`sold-out: ${seconds} s of load`);
    const measured = await closedLoop(context, sale.saleId, { buyers, seconds });
    const after = await askBare(half);
    const bareCpu = (cpuTimes(bare.pid)?.own ?? 0) - cpuBefore;
    const verdict = await checkSaleOf(context, sale, [selling.load, measured.load]);
    const bareRate = (rateOf(before) + rateOf(after)) / 2;
    const about = `${STOCK} units, then refusals; ${options.connections} connections, ${seconds} s; ${layers}`;
    const extra = {
      'bare node:http answers/s': bareRate,
      'CPU µs each: bare node:http': (bareCpu * 1e6) / (before.answered + after.answered),
      'share of bare node:http': rateOf(measured.load) / bareRate,
      admission: options.admission,
      'answers: sold_out, share': (measured.answersByCode.sold_out ?? 0) / Math.max(1, measured.load.answered),
    };
    return loadFigures('sold-out', about, { measured, verdict, per: 'answered' }, extra);
  } finally {
    await bare.stop();
  }
}

const rateOf = ({ answered, startedAtMs, endedAtMs }: LoadResult): number =>
  answered / ((endedAtMs - startedAtMs) / 1000);

/**
 * Returns the refusal of one more buyer, so that the bare server can repeat it.
 * @throws BenchError if the answer is not the refusal to be measured
 */
async function refusalOf(port: number, path: string, buyer: BuyerSlice): Promise<BareAnswer> {
  const headers = { 'Content-Type': 'application/json', ...headersAt(readRecords(buyer), buyer.recordBytes, 0) };
  const request = { method: 'POST', headers, body: PURCHASE_BODY };
  const answer = await captureAnswer(`http://127.0.0.1:${port}${path}`, request);
  if (!answer.body.includes('"sold_out"'))
    throw new BenchError(`a late buyer was answered ${answer.body.slice(0, 300)}`);
  return answer;
}

/** Returns rules with which every layer checks every request but refuses none. */
function allLayersOn({ sign }: AdmissionKeys): object {
  const wide = { limit: 1_000_000, windowMs: 10_000 };
  const global = { ratePerSecond: 1_000_000, burst: 1_000_000 };
  const networks = Array.from({ length: 1000 }, (_, index) => `172.${16 + (index >> 8)}.${index & 255}.0/24`);
  return {
    lists: {
      mode: 'on',
      addresses: { deny: [...networks, '203.0.113.7', '2001:db8::/32'] },
      agents: { deny: ['python-requests', 'headless', 'sqlmap'] },
      users: { deny: ['nobody'] },
    },
    limits: {
      mode: 'on',
      purchase: { ip: wide, user: wide, global, subjectsMax: 1_000_000 },
      leaky: { ratePerSecond: 1_000_000, waitMaxMs: 1000 },
    },
    sign: { mode: 'on', keys: [...readKeyring(sign).keys()], tokens: { mode: 'on' } },
    queue: { mode: 'on' },
    breaker: { mode: 'on' },
    degrade: { mode: 'on' },
  };
}
