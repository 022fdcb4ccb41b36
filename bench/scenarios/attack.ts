import { loadConfig } from '../../src/core/config/load.js';
import type { Sale } from '../../src/core/sale.js';
import { attackFigures } from '../attack/attack-figures.js';
import { attackRules } from '../attack/attack-rules.js';
import { attacksPerSecond, CAPTURED, honestAddresses, SLOW_SOCKETS, splitRate } from '../attack/attackers.js';
import { capturePurchases } from '../attack/capture.js';
import { bothLoads, dressedFor, honestLoad, purchasePath, takeCrowds, type Siege } from '../attack/siege.js';
import { BenchError } from '../bench-error.js';
import { measure } from '../measure.js';
import { loadFigures, type LoadFigures } from '../results.js';
import type { OpenLoopResult } from '../load/open-loop.js';
import { growthBy, scrape } from '../session/metrics.js';
import { checkBooks, dueRateOf, opLogOf, rulesAdminOf, secondsOf, type Context } from './context.js';

/**
 * Honest buyers at a fixed rate, first alone, then among attackers who ask four times as often, under the same rules.
 * There are as many units as honest requests: each one that an attacker wins is one that an honest buyer does not.
 */
export async function attack(context: Context): Promise<LoadFigures> {
  const { session } = context;
  const seconds = secondsOf(context, 'attack');
  const admin = rulesAdminOf(session);
  const signed = await admin.knows('sign');
  if (!signed) session.say('attack: this api knows no signed requests, so none is replayed');
  const rates = splitRate(dueRateOf(context, 'attack'), signed);
  const siege: Siege = { session, seconds, rates, signed, crowds: takeCrowds(context.buyers, { rates, seconds }) };
  const units = siege.crowds.honest.count + (signed ? CAPTURED : 0);
  const quiet = await session.books.openSale('attack-calm', units);
  const loud = await session.books.openSale('attack', units);
  const sign = { keys: session.admissionKeys.sign, saleIds: [quiet.saleId, loud.saleId] };
  return admin.during(attackRules(signed ? sign : null), async () => {
    const calm = await withoutAttack(context, siege, quiet);
    return withAttack(context, siege, loud, calm);
  });
}

/** @throws BenchError when its books are wrong */
async function withoutAttack(context: Context, siege: Siege, sale: Sale): Promise<OpenLoopResult> {
  const { session, rates, seconds, crowds } = siege;
  const buyers = await dressedFor(sale, 'honest', siege);
  session.say(`attack: ${seconds} s of ${rates.honest} honest requests/s, and nobody else`);
  const { load } = await measure(session, sale.saleId, (path) => honestLoad(siege, path, buyers));
  const books = await checkBooks(context, sale, [load], opLogOf(crowds.honest, load.heard));
  if (books.problems.length > 0) throw new BenchError(`the books without attack are wrong: ${books.problems[0]}`);
  return load;
}

async function withAttack(context: Context, siege: Siege, sale: Sale, calm: OpenLoopResult): Promise<LoadFigures> {
  const { session, rates, seconds, crowds, signed } = siege;
  const dressed = {
    honest: await dressedFor(sale, 'honest', siege),
    accounts: await dressedFor(sale, 'accounts', siege),
    captured: await dressedFor(sale, 'captured', siege),
  };
  const { port } = session.program('api');
  const bought = signed ? await capturePurchases(`http://127.0.0.1:${port}${purchasePath(sale)}`, dressed.captured) : 0;
  await session.books.waitUntilLanded(sale.saleId, bought, session.signal);
  session.say(`attack: ${seconds} s of the same, and ${attacksPerSecond(rates)} attacks/s`);
  const before = await scrape(port);
  const measured = await measure(session, sale.saleId, (path) => bothLoads(siege, path, dressed));
  const refused = growthBy(before, await scrape(port), 'seckill_admission_refusals_total', ['layer', 'word']);
  const { honest, attack: attackers } = measured.load;
  const opLog = new Map([...opLogOf(crowds.honest, honest.heard), ...opLogOf(crowds.accounts, attackers.heard)]);
  const { headersTimeoutMs } = loadConfig(['http'], session.env).http;
  const captured = { accepted: bought, sent: bought, answered: bought };
  const books = await checkBooks(context, sale, [measured.load, captured], opLog);
  const about =
    `${rates.honest} honest requests/s from ${honestAddresses(rates.honest)} addresses, alone, then among ` +
    `${attacksPerSecond(rates)} attacks/s and ${SLOW_SOCKETS} slow connections, ${seconds} s each` +
    (signed ? '' : '; no signatures replayed: this api knows none');
  const extra = {
    ...attackFigures({ calm, headersTimeoutMs }, measured.load),
    ...named('answers: ', measured.answersByCode),
    ...named('admission: ', refused),
  };
  return loadFigures('attack', about, { measured, books, per: 'answered' }, extra);
}

/** Rows with a name of their own. */
const named = (prefix: string, counts: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).map(([word, count]) => [`${prefix}${word}`, count]));
