import type { Sale } from '../../src/core/sale.js';
import type { ClientOutcome, OpLog } from '../../test/invariants/check-sale.js';
import { BenchError } from '../bench-error.js';
import { purchaseKeyAt, readRecords, type BuyerPool, type BuyerSlice } from '../load/buyers.js';
import { runClosedLoop } from '../load/closed-loop.js';
import type { LoadResult } from '../load/load.js';
import { OUTCOME_CODE } from '../load/open-loop.js';
import { measure, type Measured } from '../measure.js';
import type { BenchOptions, ScenarioName } from '../options.js';
import { Program } from '../session/programs.js';
import { RulesAdmin } from '../session/rules.js';
import type { Session } from '../session/session.js';
import { judgeSale, type SaleVerdict } from '../session/stores.js';

/** The session, options and buyers that each scenario gets. */
export interface Context {
  readonly session: Session;
  readonly options: BenchOptions;
  readonly buyers: BuyerPool;
}

/** Seconds of load of each scenario without --seconds. `limits`, `crowd` and `paired` use this time for each part. */
const DEFAULT_SECONDS: Record<ScenarioName, number> = {
  win: 15,
  'no-group-commit': 10,
  'sold-out': 10,
  flash: 5,
  limits: 4,
  crowd: 4,
  paired: 10, // CPU is counted in steps of 10 ms
  fleet: 10,
  memory: 60,
};

export const secondsOf = ({ options }: Pick<Context, 'options'>, scenario: ScenarioName): number =>
  options.seconds ?? DEFAULT_SECONDS[scenario];

export const flashRateOf = ({ options }: Pick<Context, 'options'>): number => options.rate ?? 10_000;

/** Number of buyers prepared per second of load, more than two cores can serve. A load that needs more ends early. */
export const BUYERS_PER_SECOND = { win: 18_000, single: 6_000, soldOut: 45_000 } as const;

/** Starts one more api. @param main the command of another build */
export function startApi({ session: { env, signal, stack } }: Context, log: string, main?: string): Promise<Program> {
  const logFile = `${stack.dir}/log/${log}.log`;
  return Program.start('api', { env, logFile, signal, ...(main === undefined ? {} : { main }) });
}

/** Measures a closed-loop load, in which each connection sends its next request as soon as it has an answer. */
export function closedLoop(
  { session, options }: Context,
  saleId: string,
  { buyers, seconds }: { readonly buyers: BuyerSlice; readonly seconds: number },
): Promise<Measured> {
  const { port } = session.program('api');
  const { connections } = options;
  return measure(session, saleId, (path) =>
    runClosedLoop({ port, path, buyers, connections, seconds }, session.signal),
  );
}

/** Returns access to the admission rules of the measured api. */
export const rulesAdminOf = ({ stack, program }: Pick<Session, 'stack' | 'program'>): RulesAdmin =>
  new RulesAdmin(stack.env().JWT_SECRET, () => program('api').operatorsPort);

/** Waits until the sale is at rest, and compares the answers of its buyers with Redis and MySQL. */
export async function checkSaleOf(
  { session }: Context,
  sale: Sale,
  loads: readonly Pick<LoadResult, 'accepted' | 'sent' | 'answered'>[],
  opLog?: OpLog,
): Promise<SaleVerdict> {
  session.progress('waiting until the sale has no open work, then checking it');
  const sum = (read: (load: (typeof loads)[number]) => number): number =>
    loads.reduce((total, load) => total + read(load), 0);
  const answers = { accepted: sum((load) => load.accepted), unanswered: sum((load) => load.sent - load.answered) };
  return judgeSale(answers, await session.stores.check(sale.saleId, opLog));
}

/** Asserts that a check passed, for loads whose figures count only then. @throws BenchError if it did not */
export function assertPassed({ problems }: SaleVerdict, what: string): void {
  if (problems.length > 0) throw new BenchError(`the check after ${what} failed: ${problems.join('; ')}`);
}

/** Returns the answer of every buyer by purchase, so that the check can compare order by order. */
export function opLogOf(buyers: BuyerSlice, outcomes: string): OpLog {
  const words = new Map<number, ClientOutcome>([
    [OUTCOME_CODE.ok, 'ok'],
    [OUTCOME_CODE.fail, 'fail'],
    [OUTCOME_CODE.unknown, 'unknown'],
  ]);
  const records = readRecords(buyers);
  const opLog = new Map<string, ClientOutcome>();
  Buffer.from(outcomes, 'base64').forEach((code, place) => {
    const word = words.get(code);
    if (word !== undefined) opLog.set(purchaseKeyAt(records, buyers, place), word);
  });
  return opLog;
}

/**
 * Returns the answer of every buyer if every request was accepted. Otherwise undefined, because the load does not store
 * single answers.
 */
export function opLogIfAllWon(slice: BuyerSlice, { sent, accepted }: LoadResult): OpLog | undefined {
  if (sent !== accepted) return undefined;
  const records = readRecords({ ...slice, count: sent });
  return new Map(Array.from({ length: sent }, (_, place) => [purchaseKeyAt(records, slice, place), 'ok']));
}
