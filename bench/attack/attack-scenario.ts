import { join } from 'node:path';
import { loadConfig } from '../../src/core/config/load.js';
import type { Sale } from '../../src/core/sale.js';
import { attackFigures, loadOfBoth, type BothLoads } from './attack-figures.js';
import { runAttack } from './attack-process.js';
import {
  addressesIn,
  attackRules,
  attacksPerSecond,
  CAPTURED,
  honestAddresses,
  SLOW_SOCKETS,
  splitRate,
  type Rates,
} from './attackers.js';
import { BenchError } from '../bench-error.js';
import { headersAt, readRecords, splitSlice, type BuyerPool, type BuyerSlice } from '../load/buyers.js';
import { signatureHeaders, withHeaders } from '../load/credentials.js';
import { PURCHASE_BODY } from '../load/load.js';
import { runOpenLoop, type OpenLoopResult } from '../load/open-loop.js';
import { measure } from '../measure.js';
import { loadFigures, type LoadFigures } from '../results.js';
import {
  assertPassed,
  checkSaleOf,
  dueRateOf,
  opLogOf,
  rulesAdminOf,
  secondsOf,
  type Context,
} from '../scenarios/context.js';
import { growthBy, scrape } from '../session/metrics.js';
import type { Session } from '../session/session.js';

/**
 * Sends honest buyers at a fixed rate, first alone, then among attackers who send four times as many requests, under
 * the same rules. There are as many units as honest requests, so each unit that an attacker wins is one that an honest
 * buyer does not get.
 */
export async function attack(context: Context): Promise<LoadFigures> {
  const { session } = context;
  const seconds = secondsOf(context, 'attack');
  const rates = splitRate(dueRateOf(context, 'attack'));
  const run: AttackRun = { session, seconds, rates, buyers: takeBuyers(context.buyers, { rates, seconds }) };
  const units = run.buyers.honest.count + CAPTURED;
  const saleWithout = await session.stores.openSale('without-attack', units);
  const saleWith = await session.stores.openSale('attack', units);
  const saleIds = [saleWithout.saleId, saleWith.saleId];
  return rulesAdminOf(session).during(attackRules(session.admissionKeys.sign, saleIds), async () => {
    const baseline = await withoutAttack(context, run, saleWithout);
    return withAttack(context, run, saleWith, baseline);
  });
}

/** @throws BenchError if the check of the sale fails */
async function withoutAttack(context: Context, run: AttackRun, sale: Sale): Promise<OpenLoopResult> {
  const { session, rates, seconds } = run;
  const buyers = await signedBuyers(sale, 'honest', run);
  session.progress(`attack: ${seconds} s of ${rates.honest} honest requests/s`);
  const { load } = await measure(session, sale.saleId, (path) => honestLoad(run, path, buyers));
  const verdict = await checkSaleOf(context, sale, [load], opLogOf(run.buyers.honest, load.outcomes));
  assertPassed(verdict, 'the load without attack');
  return load;
}

async function withAttack(
  context: Context,
  run: AttackRun,
  sale: Sale,
  baseline: OpenLoopResult,
): Promise<LoadFigures> {
  const { session, rates, seconds } = run;
  const groups = {
    honest: await signedBuyers(sale, 'honest', run),
    accounts: await signedBuyers(sale, 'accounts', run),
    captured: await signedBuyers(sale, 'captured', run),
  };
  const { port, operatorsPort } = session.program('api');
  const bought = await capturePurchases(`http://127.0.0.1:${port}${purchasePath(sale)}`, groups.captured);
  await session.stores.waitUntilLanded(sale.saleId, bought, session.signal);
  session.progress(`attack: ${seconds} s of the same, and ${attacksPerSecond(rates)} attacks/s`);
  const before = await scrape(operatorsPort);
  const measured = await measure(session, sale.saleId, (path) => bothLoads(run, path, groups));
  const refused = growthBy(before, await scrape(operatorsPort), 'seckill_admission_refusals_total', ['layer', 'word']);
  const { honest, attack: attackers } = measured.load;
  const opLog = new Map([
    ...opLogOf(run.buyers.honest, honest.outcomes),
    ...opLogOf(run.buyers.accounts, attackers.outcomes),
  ]);
  const { headersTimeoutMs } = loadConfig(['http'], session.env).http;
  const captured = { accepted: bought, sent: bought, answered: bought };
  const verdict = await checkSaleOf(context, sale, [measured.load, captured], opLog);
  const about =
    `${rates.honest} honest requests/s from ${honestAddresses(rates.honest)} addresses, alone, then among ` +
    `${attacksPerSecond(rates)} attacks/s and ${SLOW_SOCKETS} slow connections, ${seconds} s each`;
  const extra = {
    ...attackFigures({ baseline, headersTimeoutMs }, measured.load),
    ...named('answers: ', measured.answersByCode),
    ...named('admission: ', refused),
  };
  return loadFigures('attack', about, { measured, verdict, per: 'answered' }, extra);
}

/** Rows that have a name of their own. */
const named = (prefix: string, counts: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).map(([word, count]) => [`${prefix}${word}`, count]));

/** Buyers by group. The user ids of a slice are the owners of its orders. */
interface AttackBuyers {
  readonly honest: BuyerSlice;
  /** Accounts of the flood. */
  readonly accounts: BuyerSlice;
  /** These buyers buy before the attack, and attackers replay their requests. */
  readonly captured: BuyerSlice;
}

/** Honest buyers, attackers and their rules, which both parts of the scenario share. */
interface AttackRun {
  readonly session: Session;
  readonly buyers: AttackBuyers;
  readonly rates: Rates;
  readonly seconds: number;
}

function takeBuyers(pool: BuyerPool, { rates, seconds }: Pick<AttackRun, 'rates' | 'seconds'>): AttackBuyers {
  const [honestCount, accountCount] = [rates.honest * seconds, rates.attack.flood * seconds];
  const [honest, others] = splitSlice(pool.take(honestCount + accountCount + CAPTURED), honestCount);
  const [accounts, captured] = splitSlice(others, accountCount);
  return { honest, accounts, captured };
}

const purchasePath = ({ saleId }: Sale): string => `/v1/sales/${saleId}/purchases`;

/** Buyers whose requests are signed for this sale. */
function signedBuyers(sale: Sale, name: keyof AttackBuyers, run: AttackRun): Promise<BuyerSlice> {
  const { session, buyers } = run;
  const headersOf = signatureHeaders(session.admissionKeys.sign, purchasePath(sale));
  return withHeaders(buyers[name], join(session.dir, `attack-${name}.bin`), headersOf);
}

/** Sends honest buyers at their rate, from many addresses. */
function honestLoad({ session, rates, seconds }: AttackRun, path: string, buyers: BuyerSlice): Promise<OpenLoopResult> {
  const connections = honestAddresses(rates.honest);
  const plan = { port: session.program('api').port, path, buyers, connections, seconds, rate: rates.honest };
  return runOpenLoop({ ...plan, addresses: addressesIn('honest', connections) }, session.signal);
}

/** Sends the same honest buyers, and attackers at the same time from a separate process. */
async function bothLoads(
  run: AttackRun,
  path: string,
  { honest, accounts, captured }: AttackBuyers,
): Promise<BothLoads> {
  const { session, rates, seconds } = run;
  const { port } = session.program('api');
  const plan = { port, path, seconds, rates: rates.attack, accounts, captured, slowSockets: SLOW_SOCKETS };
  const [buyers, attackers] = await Promise.all([honestLoad(run, path, honest), runAttack(plan, session.signal)]);
  return loadOfBoth(buyers, attackers);
}

const ANSWER_TIMEOUT_MS = 10_000;

/** Buys as these buyers would, one after the other. An eavesdropper would have these requests. @returns how many won */
async function capturePurchases(url: string, buyers: BuyerSlice): Promise<number> {
  const records = readRecords(buyers);
  for (let place = 0; place < buyers.count; place++) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headersAt(records, buyers.recordBytes, place) },
      body: PURCHASE_BODY,
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    const text = await response.text();
    if (response.status !== 202) {
      throw new BenchError(`a purchase before the attack was answered ${response.status}: ${text.slice(0, 300)}`);
    }
  }
  return buyers.count;
}
