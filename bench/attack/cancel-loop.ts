import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTokenSigner } from '../../src/http/token.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { BenchError } from '../bench-error.js';
import { LatencyHistogram } from '../load/open-loop.js';
import { PURCHASE_BODY, type LoadResult } from '../load/load.js';
import { measure } from '../measure.js';
import { loadFigures, type LoadFigures } from '../results.js';
import { checkSaleOf, rulesAdminOf, secondsOf, type Context } from '../scenarios/context.js';
import { Clients, count, get, newTally, post, wordsOf, type Tally } from './accounts.js';

/** Units, and as many honest buyers, each of whom wants one. */
const STOCK = 1000;
const HONEST_ADDRESSES = 250;
const LOOPS = { accounts: 200, addresses: 50, headStartMs: 3000 } as const;
const RULES = { mode: 'on', cancelsMax: 5 } as const;
/** What an account of the loop may leave behind: what it cancelled, and the one that it must keep. */
export const ROWS_EACH_MAX = RULES.cancelsMax + 1;
const TOKEN_MS = 3_600_000;
/** Who is refused asks again so soon; a page that is reloaded. */
const AGAIN_MS = 250;
/** Of one request: minutes, on a machine that is far too busy. */
const TRIES_MAX = 500;

/** What `cancel-loop` is judged by. */
export const LEFT_SHARE_ROW = 'honest: share of what was left';
export const ROWS_EACH_ROW = 'loops: orders of an account, most';

interface LoopLoad extends LoadResult {
  readonly honestAccepted: number;
}

/**
 * Accounts buy, cancel and buy again without end, so that the stock is held up without being sold. Honest buyers come later
 * and ask until they have a unit. The rules bound the cancels of an account; the order after the last one stays.
 */
export async function cancelLoop(context: Context): Promise<LoadFigures> {
  const { session } = context;
  const { stores } = session;
  const seconds = secondsOf(context, 'cancel-loop');
  const sale = await stores.openSale('cancel-loop', STOCK);
  return rulesAdminOf(session).during({ orders: { ...RULES, sales: [sale.saleId] } }, async () => {
    session.progress(`cancel-loop: ${seconds} s of ${LOOPS.accounts} accounts, and ${STOCK} honest buyers`);
    const [loops, honest] = [newTally(), newTally()];
    const measured = await measure(session, sale.saleId, () => bothGroups(context, sale.saleId, { loops, honest }));
    const { accepted, honestAccepted } = measured.load;
    const verdict = await checkSaleOf(context, sale, [{ ...measured.load, sent: 0, answered: 0 }]);
    const [most] = await stores.mysql.query<{ count: string }>(
      "SELECT COUNT(*) AS count FROM orders WHERE sale_id = ? AND user_id LIKE 'loop-%' GROUP BY user_id ORDER BY 1 DESC LIMIT 1",
      [sale.saleId],
    );
    const [rows] = await stores.mysql.query<{ count: string }>(
      'SELECT COUNT(*) AS count FROM orders WHERE sale_id = ?',
      [sale.saleId],
    );
    const { requests, buyers } = bucketKeys({ saleId: sale.saleId, bucket: 0 });
    const about =
      `${STOCK} units, ${STOCK} honest buyers from ${HONEST_ADDRESSES} addresses, beside ${LOOPS.accounts} accounts that buy ` +
      `and cancel without end, ${RULES.cancelsMax} cancels each, ${seconds} s`;
    const extra = {
      [LEFT_SHARE_ROW]: honestAccepted / (STOCK - (accepted - honestAccepted)),
      'loops: units held at the end': accepted - honestAccepted,
      [ROWS_EACH_ROW]: Number(most?.count ?? 0),
      'orders in MySQL': Number(rows?.count ?? 0),
      'entries in Redis': await stores.redis.redis.hlen(requests),
      'buyers in Redis': await stores.redis.redis.hlen(buyers),
      'honest: answers': wordsOf(honest),
      'loops: answers': wordsOf(loops),
    };
    return loadFigures('cancel-loop', about, { measured, verdict, per: 'answered' }, extra);
  });
}

/** The loops from their start to the end, honest buyers until they have bought or the time is over. */
async function bothGroups(
  { session, options }: Context,
  saleId: string,
  { loops, honest }: { readonly loops: Tally; readonly honest: Tally },
): Promise<LoopLoad> {
  const seconds = secondsOf({ options }, 'cancel-loop');
  const api = `http://127.0.0.1:${session.program('api').port}/v1`;
  const purchases = `${api}/sales/${saleId}/purchases`;
  const signer = createTokenSigner(session.stack.env().JWT_SECRET);
  const clients = new Clients();
  const stop = new AbortController();
  session.signal.addEventListener('abort', () => stop.abort(), { once: true });
  /** Asks until the answer says what became of it: a lost one may have bought, so the same key is sent again. */
  const buy = async (tally: Tally, client: Agent, token: string, key: string): Promise<boolean> => {
    const headers = { 'Idempotency-Key': key };
    for (let tried = 0; tried < TRIES_MAX; tried++) {
      tally.sent++;
      const answer = await post(purchases, client, { token, headers, body: PURCHASE_BODY });
      count(tally, answer);
      if (answer !== null && answer.status < 500) return answer.status < 300;
      await sleep(AGAIN_MS);
    }
    throw new BenchError(`no answer to purchase ${key} in ${TRIES_MAX} tries`);
  };
  /** @returns whether it was cancelled; false: it must stay */
  const cancel = async (client: Agent, token: string, key: string): Promise<boolean> => {
    let orderId: unknown;
    for (let tried = 0; tried < TRIES_MAX; tried++) {
      orderId ??= (await get(`${purchases}/${key}?wait=5`, client, { token }))?.body.orderId;
      if (orderId === undefined) {
        await sleep(AGAIN_MS);
        continue;
      }
      loops.sent++;
      const answer = await post(`${api}/orders/${String(orderId)}/cancel`, client, { token });
      count(loops, answer);
      if (answer !== null && answer.status < 500) return answer.status === 200;
      await sleep(AGAIN_MS);
    }
    throw new BenchError(`order ${String(orderId)} of ${key} could not be cancelled in ${TRIES_MAX} tries`);
  };

  let held = 0;
  const loop = async (place: number): Promise<void> => {
    const client = clients.at('flood', place % LOOPS.addresses);
    const token = signer({ userId: `loop-${place}`, roles: [], ttlMs: TOKEN_MS });
    for (let nth = 0; !stop.signal.aborted; nth++) {
      if (!(await buy(loops, client, token, `k${nth}`))) {
        await sleep(AGAIN_MS);
        continue;
      }
      held++;
      if (await cancel(client, token, `k${nth}`)) held--;
    }
  };
  const startedAtMs = Date.now();
  const loopsEnd = Promise.all(Array.from({ length: LOOPS.accounts }, (_, place) => loop(place)));
  await sleep(LOOPS.headStartMs);

  const latency = new LatencyHistogram();
  const endsAtMs = Date.now() + seconds * 1000;
  const buyOne = async (place: number): Promise<void> => {
    const client = clients.at('honest', place % HONEST_ADDRESSES);
    const token = signer({ userId: `honest-${place}`, roles: [], ttlMs: TOKEN_MS });
    await sleep((place / STOCK) * seconds * 500); // they come in the first half of the time
    const beganMs = performance.now();
    while (Date.now() < endsAtMs && !stop.signal.aborted) {
      if (await buy(honest, client, token, `k${place}`)) return latency.record(0, performance.now() - beganMs);
      await sleep(AGAIN_MS);
    }
  };
  await Promise.all(Array.from({ length: STOCK }, (_, place) => buyOne(place)));
  const endedAtMs = Date.now();
  stop.abort();
  await loopsEnd;
  clients.end();
  return {
    sent: loops.sent + honest.sent,
    answered: loops.answered + honest.answered,
    accepted: latency.count + held,
    honestAccepted: latency.count,
    errors: honest.sent - honest.answered,
    startedAtMs,
    endedAtMs,
    latency: latency.summary(),
    ranOutOfBuyers: false,
    cpuSeconds: 0, // they run in the bench itself
  };
}
