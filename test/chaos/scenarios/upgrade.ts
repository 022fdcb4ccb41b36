import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stack } from '../../../deploy/local/stack/stack.js';
import { installedRelease, RELEASE_BEFORE, releaseBeforeMissing } from '../../helpers/release-before.js';
import type { ScenarioContext } from '../context.js';
import { CHECK_BACK_WITHIN_MS } from '../harness/broker.js';
import { Buyers, isAccepted, type Load, type PurchaseParts, userIds } from '../harness/buyers.js';
import { BUILT_MAIN, RunningCommand } from '../harness/commands.js';
import { expectAtLeast, expectAtMost, expectEqual, expectFields } from '../harness/expect.js';
import { expectRowPerAccepted } from '../harness/load.js';
import { NO_REDRIVE, type Program, type ProgramName, type ProgramOptions, readMetric } from '../harness/programs.js';
import { deadLettersOf, isRecorded, statesOf } from '../harness/sale-state.js';
import { bootSecondStack, checkSecondStack } from '../harness/second-stack.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { Scenario } from '../scenario.js';

// L5: programs of two releases run beside each other, by the rule in docs/upgrades.md.

/** The builds of both releases. */
interface Releases {
  readonly before: string;
  readonly now: string;
}

const releases = (): Releases => ({ before: installedRelease(), now: BUILT_MAIN });

const LEASES = { ...NO_REDRIVE, KEEPER_EVERY_MS: '200', OUTBOX_EVERY_MS: '100', OUTBOX_LEASE_MS: '4000' };
const TRIES = { tries: 20 };

/**
 * Programs of one release die between two steps, and programs of the other release end their work: a message without
 * its mark, a half message without its commit, a release without its end.
 */
async function handOver(context: ScenarioContext, dies: string, lives: string): Promise<void> {
  const { stack, random } = context;
  const start = (name: ProgramName, main: string, options: ProgramOptions = {}): Promise<Program> =>
    context.start(name, { ...options, main, ...(name === 'keeper' ? { env: LEASES } : {}) });
  const [living, firstWorker] = await Promise.all([
    start('api', lives),
    start('worker', dies, { failPoint: 'worker_after_commit' }),
  ]);
  const { saleId } = await context.openSale({ stock: 1000 });
  let api = living;
  const buyers = context.buyers(saleId, () => [api]);
  const early = userIds(random.whole(4, 12), 'early-');
  await buyers.rush(early, 8, TRIES);
  await context.diedAt(firstWorker, 'worker_after_commit');

  const [victim, keeper] = await Promise.all([
    start('api', dies, { failPoint: 'after_deduct' }),
    start('keeper', dies, { failPoint: 'release_before_done' }),
    start('worker', lives),
  ]);
  api = victim;
  const late = userIds(random.whole(4, 12), 'late-');
  await buyers.rush(late, 8, { tries: 4 });
  await context.diedAt(victim, 'after_deduct');
  api = living;

  const [ann] = early as [string];
  let orderId = '';
  const isOrdered = async (): Promise<boolean> => {
    const { status, orderId: id } = (await buyers.status(ann)).json;
    orderId = String(id);
    return status === 'ordered';
  };
  await context.until('the other worker has marked what was written', isOrdered);
  expectEqual((await buyers.move('cancel', ann, orderId))?.status, 200, 'a cancellation');
  await context.diedAt(keeper, 'release_before_done');
  await start('keeper', lives);
  context.faultEnded();
  const areRecorded = (): Promise<boolean> => isRecorded(stack, saleId);
  await context.until('the check-back has committed what was deducted', areRecorded);
  const users = early.length + late.length;
  await expectRowPerAccepted(context, buyers, { rows: users, failedRows: 0, liveRows: users - 1 });
  expectEqual(await statesOf(stack, saleId), { pending_payment: users - 1, cancelled: 1 }, 'orders');
}

const BEFORE_DIES: Scenario = {
  name: 'L5/before_dies',
  title: 'programs of the previous release die between two steps: programs of this release end their work once',
  fast: true,
  alone: true,
  skip: releaseBeforeMissing,
  healMaxMs: CHECK_BACK_WITHIN_MS, // a check-back may take longer than the heal time on a busy machine
  run: (context) => handOver(context, releases().before, releases().now),
};

const THIS_DIES: Scenario = {
  name: 'L5/this_dies',
  title: 'programs of this release die between two steps: programs of the previous release end their work once',
  fast: true,
  alone: true,
  skip: releaseBeforeMissing,
  healMaxMs: CHECK_BACK_WITHIN_MS,
  run: (context) => handOver(context, releases().now, releases().before),
};

/**
 * Makes purchases with metadata, with a trace, and plain ones, in turn, so that apis write message bodies of every
 * version.
 */
function partsOf(nth: number): PurchaseParts {
  switch (nth % 3) {
    case 0:
      return { metadata: { cart: String(nth) } };
    case 1:
      return { traceparent: `00-${nth.toString(16).padStart(32, '4')}-00f067aa0ba902b7-00` };
    default:
      return {};
  }
}

/** Answers to the buyers of one phase. */
interface Phase {
  readonly purchases: number;
  readonly accepted: number;
  /** Unexpected answers by status and code, with their number. Usually empty. */
  readonly refusals: readonly string[];
  /** Buyers whose connection broke, and who get their answer with the same key. */
  readonly unanswered: number;
  /** Payments, cancellations and polls that got a wrong answer. */
  readonly otherFaults: readonly string[];
  readonly p99Ms: number;
}

/** New buyers who keep coming to the apis in service, and pay, cancel or leave their orders. */
class Shoppers {
  readonly #buyers: Buyers;
  readonly #load: Load;
  readonly #tookMs: number[] = [];
  readonly #faults: string[] = [];
  #before = new Map<string, number>();

  constructor(buyers: Buyers, lanes: number) {
    this.#buyers = buyers;
    let isOver = false;
    let made = 0;
    const lane = async (): Promise<void> => {
      while (!isOver) {
        await this.#shop(made++);
        await sleep(PAUSE_MS);
      }
    };
    const ended = Promise.all(Array.from({ length: lanes }, lane));
    this.#load = {
      stop: async () => {
        isOver = true;
        await ended;
      },
    };
  }

  /** Counts events since the last call. */
  phase(): Phase {
    const { answers } = this.#buyers.opLog;
    const counts = [...answers].map(([word, count]) => [word, count - (this.#before.get(word) ?? 0)] as const);
    this.#before = new Map(answers);
    const times = this.#tookMs.splice(0).sort((one, other) => one - other);
    const sum = (fits: (word: string) => boolean): number =>
      counts.reduce((total, [word, count]) => total + (fits(word) ? count : 0), 0);
    const refusals = counts.filter(([word, count]) => count > 0 && !word.startsWith('20') && word !== 'nothing');
    return {
      purchases: sum(() => true),
      accepted: sum((word) => word.startsWith('20')),
      refusals: refusals.map(([word, count]) => `${word} × ${count}`),
      unanswered: sum((word) => word === 'nothing'),
      otherFaults: this.#faults.splice(0),
      p99Ms: Math.round(times[Math.floor(times.length * 0.99)] ?? 0),
    };
  }

  stop(): Promise<void> {
    return this.#load.stop();
  }

  async #shop(nth: number): Promise<void> {
    const userId = `shop-${nth}`;
    const startedMs = performance.now();
    const answer = await this.#buyers.buy(userId, partsOf(nth));
    this.#tookMs.push(performance.now() - startedMs);
    if (!isAccepted(answer) || nth % FOLLOWED !== 0) return;
    const status = await this.#buyers.status(userId, 'k1', FOLLOW_S).catch(() => null);
    if (status?.json.status !== 'ordered') return this.#note('status', status);
    const move = nth % (2 * FOLLOWED) === 0 ? 'pay' : 'cancel';
    const moved = await this.#buyers.move(move, userId, String(status.json.orderId));
    if (moved?.status !== 200) this.#note(move, moved);
  }

  #note(what: string, answer: { readonly status: number; readonly text: string } | null): void {
    this.#faults.push(`${what}: ${answer === null ? 'nothing' : `${answer.status} ${answer.text.slice(0, 120)}`}`);
  }
}

const LANES = 16;
const PAUSE_MS = 20;
/** Every n-th buyer waits for the order and pays or cancels it. */
const FOLLOWED = 8;
/** Messages of a killed worker return after ten seconds. */
const FOLLOW_S = 25;
/** Time between taking an api out of service and stopping it, in which it answers requests under way. */
const OUT_OF_SERVICE_MS = 500;
const STEADY_MS = 5_000;

/** Asserts that the other release causes no bug and no operational error in the log. */
function expectNoErrors({ name, log, logFile }: Program): void {
  const errors = log.split('\n').filter((line) => /"level":[56]0/.test(line));
  expectEqual(errors, [], `errors that a ${name} logged (${logFile})`);
}

/** Two apis, two workers and two keepers, which are replaced one after another. */
class Fleet {
  readonly #context: ScenarioContext;
  readonly #env: Readonly<Record<string, string>>;
  readonly #programs: Record<ProgramName, Program[]> = { api: [], worker: [], keeper: [] };

  constructor(context: ScenarioContext, env: Readonly<Record<string, string>>) {
    this.#context = context;
    this.#env = env;
  }

  /** The apis to which a load balancer sends buyers. */
  get apis(): readonly Program[] {
    return this.#programs.api.filter(({ running }) => running);
  }

  expectNoErrors(): void {
    for (const program of Object.values(this.#programs).flat()) expectNoErrors(program);
  }

  async start(main: string): Promise<void> {
    const all = (['api', 'worker', 'keeper'] as const).flatMap((name) => [name, name]);
    await Promise.all(all.map((name) => this.#add(name, main)));
  }

  /**
   * For each kind of program in turn, replaces one program by one of the other release after it has drained. The second
   * program is killed first.
   */
  async roll(main: string, order: readonly ProgramName[], killed: readonly ProgramName[]): Promise<void> {
    for (const name of order) {
      const [first, second] = [...this.#programs[name]] as [Program, Program];
      await this.#add(name, main);
      await this.#leave(name, first);
      if (killed.includes(name)) {
        await this.#context.observed(
          `the second ${name} was killed`,
          async () => (await second.crash()).signal === 'SIGKILL',
        );
        this.#remove(name, second);
        await this.#add(name, main);
      } else {
        await this.#add(name, main);
        await this.#leave(name, second);
      }
    }
  }

  async #add(name: ProgramName, main: string): Promise<void> {
    this.#programs[name].push(await this.#context.start(name, { main, env: this.#env }));
  }

  async #leave(name: ProgramName, program: Program): Promise<void> {
    this.#remove(name, program);
    if (name === 'api') await sleep(OUT_OF_SERVICE_MS);
    expectEqual(await program.stop(), { code: 0, signal: null }, `the end of a ${name} that was asked to end`);
    expectNoErrors(program);
  }

  #remove(name: ProgramName, program: Program): void {
    this.#programs[name] = this.#programs[name].filter((one) => one !== program);
  }
}

/** Readers change before writers, because new readers understand old data. On the way back they change last. */
const FORWARD: readonly ProgramName[] = ['worker', 'keeper', 'api'];
const BACK: readonly ProgramName[] = [...FORWARD].reverse();
const KILLED: readonly ProgramName[] = ['api', 'worker'];

const seckill = async (main: string, env: ScenarioContext['env'], ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await new RunningCommand(args, env, main).end;
  expectEqual([code, stderr], [0, ''], `seckill ${args.join(' ')}`);
  return stdout;
};

/** Creates and opens a sale with the commands of its release, because its tables may lack new columns. */
async function openWith(main: string, env: ScenarioContext['env'], ...flags: readonly string[]): Promise<string> {
  const what = ['--sku', `upgrade-${randomUUID()}`, '--title', 'A thing in a test', '--price-cents', '1999'];
  const made = await seckill(main, env, 'sale', 'create', '--json', '--currency', 'EUR', ...what, ...flags);
  const [, saleId = ''] = /"saleId":"(\d+)"/.exec(made) ?? [];
  for (const verb of ['warm', 'open']) await seckill(main, env, 'sale', verb, saleId);
  return saleId;
}

const sentenceOf = ({ purchases, accepted, refusals, unanswered, p99Ms }: Phase): string => {
  const refused = refusals.length === 0 ? '0 refused' : `refused: ${refusals.join(', ')}`;
  return `${purchases} purchases, ${accepted} accepted, ${refused}, ${unanswered} unanswered, p99 ${p99Ms} ms`;
};

/** A second system, which starts with the tables and topics of the previous release. */
function bootBefore(context: ScenarioContext, before: string): Promise<StackControls> {
  return bootSecondStack(context, 'release-before', {
    prepare: async (stack: Stack) => {
      const env = { ...context.env, ...stack.env() };
      await seckill(before, env, 'topics');
      await seckill(before, env, 'migrate');
    },
  });
}

const ROLLING: Scenario = {
  name: 'L5/rolling',
  title: 'every program is replaced by this release and back under load: no buyer is refused, and the books are right',
  alone: true,
  noSale: true,
  skip: releaseBeforeMissing,
  timeoutMs: 600_000,
  async run(context) {
    const { before, now } = releases();
    const stack = await bootBefore(context, before);
    const env = { ...stack.env, PAYMENT_PROVIDER: 'simulator', ...LEASES };
    const commandEnv = { ...context.env, ...env };
    const fleet = new Fleet(context, env);
    await fleet.start(before);
    const saleId = await openWith(before, commandEnv, '--stock', '200000');
    const scarceId = await openWith(before, commandEnv, '--stock', '300', '--buckets', '2');
    const urls = (): readonly string[] => fleet.apis.map(({ url }) => url);
    const [buyers, crowd] = [saleId, scarceId].map((id) => new Buyers(id, stack.env.JWT_SECRET, urls)) as [
      Buyers,
      Buyers,
    ];
    const shoppers = new Shoppers(buyers, LANES);
    const sellsOut = crowd.startLoad({ parallel: 2, pauseMs: 150, tries: 1, prefix: 'crowd' });
    context.atEnd(() => Promise.all([shoppers.stop(), sellsOut.stop()]));

    const expectPhase = async (what: string, unansweredMax: number): Promise<void> => {
      const phase = shoppers.phase();
      await context.observed(`${what}: ${sentenceOf(phase)}`, () => phase.accepted > 0);
      expectEqual(phase.refusals, [], `refusals, ${what}`);
      expectAtMost(phase.unanswered, unansweredMax, `purchases without an answer, ${what}`);
      if (unansweredMax === 0) expectEqual(phase.otherFaults, [], `polls, payments and cancellations, ${what}`);
      expectAtMost(phase.otherFaults.length, unansweredMax, `polls, payments, cancellations: ${phase.otherFaults}`);
    };
    await sleep(STEADY_MS);
    await expectPhase(RELEASE_BEFORE.tag, 0);
    const applied = JSON.parse(await seckill(now, commandEnv, 'migrate', '--json')) as {
      readonly applied: readonly string[];
    };
    await seckill(now, commandEnv, 'topics');
    const shadow = await context.start('worker', { main: now, env, args: ['--shadow'] });
    await sleep(STEADY_MS);
    await expectPhase(`after migrate (${applied.applied.join(', ') || 'nothing new'})`, 0);
    let compared = 0;
    await context.until('the shadow has compared 100 purchases', async () => {
      compared = await readMetric(shadow, 'seckill_shadow_purchases_total');
      return compared >= 100;
    });
    expectEqual(await shadow.stop(), { code: 0, signal: null }, `the end of a shadow (${shadow.log.slice(-500)})`);
    await context.observed(`a shadow of this release found no difference in ${compared} purchases`, () => compared > 0);
    await fleet.roll(now, FORWARD, KILLED);
    await expectPhase('to this release', LANES);
    await sleep(STEADY_MS);
    await expectPhase('this release', 0);
    await fleet.roll(before, BACK, KILLED);
    await expectPhase(`back to ${RELEASE_BEFORE.tag}`, LANES);
    await sleep(STEADY_MS);
    await expectPhase(`${RELEASE_BEFORE.tag} again`, 0);
    context.faultEnded();
    await Promise.all([shoppers.stop(), sellsOut.stop()]);

    for (const client of [buyers, crowd]) await client.retryUnknown();
    const figures = await checkSecondStack(stack, buyers);
    const accepted = buyers.opLog.count('ok');
    expectFields(figures, { rows: accepted, failedRows: 0, oversold: 0, duplicates: 0, lost: 0 }, 'a row for each 202');
    const soldOut = await checkSecondStack(stack, crowd);
    expectFields(soldOut, { liveRows: crowd.opLog.count('ok'), failedRows: 0, oversold: 0 }, 'the sale of two buckets');
    const codes = [...crowd.opLog.answers.keys()].filter(
      (word) => !['202', '200', 'nothing', '409 sold_out'].includes(word),
    );
    expectEqual(codes, [], 'other answers than sold_out where units were scarce');
    for (const id of [saleId, scarceId]) expectEqual(await deadLettersOf(stack, id), 0, 'dead letters');
    for (const state of ['paid', 'cancelled']) expectAtLeast((await statesOf(stack, saleId))[state] ?? 0, 1, state);
    fleet.expectNoErrors();
    await context.observed(
      `${figures.rows} orders for ${accepted} accepted purchases`,
      () => figures.rows === accepted,
    );
  },
};

export const UPGRADE_SCENARIOS: readonly Scenario[] = [BEFORE_DIES, THIS_DIES, ROLLING];
