import { setTimeout as sleep } from 'node:timers/promises';
import { createTokenSigner } from '../../src/http/token.js';
import { LatencyHistogram } from '../load/open-loop.js';
import { PURCHASE_BODY, type LoadResult } from '../load/load.js';
import { measure } from '../measure.js';
import { loadFigures, type LoadFigures } from '../results.js';
import { checkSaleOf, rulesAdminOf, secondsOf, type Context } from '../scenarios/context.js';
import { Clients, count, newTally, post, wordsOf, type Tally } from './accounts.js';

/** As many honest buyers, each of whom wants one. */
const STOCK = 1000;
/** Enough accounts, at enough addresses, to hold every place three times over. */
const CROWD = { accounts: 30_000, addresses: 500, perSecond: 1000, headStartMs: 3000, inFlightMax: 500 } as const;
const HONEST_ADDRESSES = 250;
/** The crowd could take all places: 500 addresses × 20 are more than 3 × 1000. */
const TOKEN_RULES = { perUnit: 3, perAddress: 20, lifeMs: 2000 } as const;
const TOKEN_MS = 3_600_000;
const LONGEST_WAIT_MS = 5000;

/** What `tokens` is judged by. */
export const HONEST_STOCK_ROW = 'honest: share of the stock';

/**
 * A crowd fetches purchase tokens again and again and never buys. Honest buyers come later, ask when they are told to, and
 * buy as soon as they have a token.
 */
export async function tokens(context: Context): Promise<LoadFigures> {
  const { session } = context;
  const seconds = secondsOf(context, 'tokens');
  const sale = await session.stores.openSale('tokens', STOCK);
  const rules = { sign: { tokens: { mode: 'on', sales: [sale.saleId], ...TOKEN_RULES } } };
  return rulesAdminOf(session).during(rules, async () => {
    session.progress(`tokens: ${seconds} s of ${CROWD.perSecond} requests/s by a crowd, and ${STOCK} honest buyers`);
    const [crowd, honest] = [newTally(), newTally()];
    const measured = await measure(session, sale.saleId, () => bothCrowds(context, sale.saleId, { crowd, honest }));
    const verdict = await checkSaleOf(context, sale, [{ ...measured.load, sent: 0, answered: 0 }]);
    const about =
      `${STOCK} units, ${STOCK} honest buyers from ${HONEST_ADDRESSES} addresses, behind a crowd of ` +
      `${CROWD.accounts} accounts from ${CROWD.addresses} addresses that ask ${CROWD.perSecond} times a second, ${seconds} s`;
    const extra = {
      [HONEST_STOCK_ROW]: measured.load.accepted / STOCK,
      'honest: answers': wordsOf(honest),
      'crowd: answers': wordsOf(crowd),
    };
    return loadFigures('tokens', about, { measured, verdict, per: 'answered' }, extra);
  });
}

/** The crowd from its start to the end, honest buyers until they have bought or the time is over. */
async function bothCrowds(
  { session, options }: Context,
  saleId: string,
  { crowd, honest }: { readonly crowd: Tally; readonly honest: Tally },
): Promise<LoadResult> {
  const seconds = secondsOf({ options }, 'tokens');
  const sale = `http://127.0.0.1:${session.program('api').port}/v1/sales/${saleId}`;
  const signer = createTokenSigner(session.stack.env().JWT_SECRET);
  const tokenOf = (userId: string): string => signer({ userId, roles: [], ttlMs: TOKEN_MS });
  const clients = new Clients();
  const stop = new AbortController();
  session.signal.addEventListener('abort', () => stop.abort(), { once: true });

  const crowdEnds = (async () => {
    const tokensOfCrowd = Array.from({ length: CROWD.accounts }, (_, place) => tokenOf(`crowd-${place}`));
    let [inFlight, lastMs, owed] = [0, performance.now(), 0];
    while (!stop.signal.aborted) {
      const nowMs = performance.now();
      owed += ((nowMs - lastMs) / 1000) * CROWD.perSecond;
      lastMs = nowMs;
      // What a machine that is too busy cannot take is not sent later: honest buyers would stand behind it here, in the bench.
      owed = Math.min(owed, CROWD.inFlightMax - inFlight);
      for (; owed >= 1; owed--) {
        inFlight++;
        const account = crowd.sent++ % CROWD.accounts;
        const client = clients.at('flood', account % CROWD.addresses);
        const asked = { token: tokensOfCrowd[account] as string };
        void post(`${sale}/purchase-token`, client, asked)
          .then((answer) => count(crowd, answer))
          .finally(() => inFlight--);
      }
      await sleep(5);
    }
  })();
  await sleep(CROWD.headStartMs);

  const latency = new LatencyHistogram();
  const startedAtMs = Date.now();
  const endsAtMs = startedAtMs + seconds * 1000;
  const buy = async (place: number): Promise<void> => {
    const client = clients.at('honest', place % HONEST_ADDRESSES);
    const token = tokenOf(`honest-${place}`);
    const beganMs = performance.now();
    while (Date.now() < endsAtMs && !stop.signal.aborted) {
      honest.sent++;
      const handed = await post(`${sale}/purchase-token`, client, { token });
      count(honest, handed);
      const purchaseToken = handed?.body.token;
      if (typeof purchaseToken !== 'string') {
        await sleep(Math.min(LONGEST_WAIT_MS, Number(handed?.body.retryAfterMs ?? 1000)));
        continue;
      }
      honest.sent++;
      const headers = { 'Idempotency-Key': `k${place}`, 'Seckill-Purchase-Token': purchaseToken };
      const bought = await post(`${sale}/purchases`, client, { token, headers, body: PURCHASE_BODY });
      count(honest, bought);
      if (bought?.status === 202) return latency.record(0, performance.now() - beganMs);
    }
  };
  await Promise.all(Array.from({ length: STOCK }, (_, place) => buy(place)));
  const endedAtMs = Date.now();
  stop.abort();
  await crowdEnds;
  clients.end();
  const [sent, answered] = [crowd.sent + honest.sent, crowd.answered + honest.answered];
  return {
    sent,
    answered,
    accepted: latency.count,
    errors: honest.sent - honest.answered,
    startedAtMs,
    endedAtMs,
    latency: latency.summary(),
    ranOutOfBuyers: false,
    cpuSeconds: 0, // they run in the bench itself
  };
}
