import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { MysqlPool } from '../../../src/mysql/pool.js';
import { REPO_DIR } from '../stack/paths.js';
import { SupervisedProgram, type ProgramSpec } from '../supervisor.js';
import { Buyer, type BuyersWorld, type OfferedSale } from './buyer.js';
import { FAULT_TIMES, type Fault } from './plan.js';
import { makeSale, type DemoSale, type Operators } from './sales.js';

/** Reports a deliberate fault or its effect. */
interface FaultNews {
  readonly fault: Fault;
  /** Names the event and where to look, in one line. */
  readonly sentence: string;
  readonly [fact: string]: string | number;
}

export interface FaultWorld {
  readonly world: BuyersWorld;
  readonly operators: Operators;
  readonly mysql: Pick<MysqlPool, 'execute' | 'query'>;
  /** The worker that is killed. Its supervisor restarts it. */
  readonly worker: SupervisedProgram;
  /** Environment of another API of this system. */
  readonly apiEnv: NodeJS.ProcessEnv;
  /** Open sales from which an interrupted purchase is made. */
  readonly sales: () => readonly DemoSale[];
  readonly tell: (news: FaultNews) => void;
  readonly report: (sentence: string) => void;
  readonly stopping: AbortSignal;
}

/** The sale whose purchases MySQL refuses. Dead letters hold its units for a while. */
const REFUSED_SALE = {
  title: 'Demo: MySQL refuses its orders',
  priceCents: 700,
  stock: 500,
  limitPerBuyer: 1,
  buckets: 1,
};
const REFUSED_SALE_OPEN_MS = 6 * 3_600_000;
/** Time until the sale is warm and open. */
const SALE_OPEN_WITHIN_MS = 30_000;
/** Time to look at a dead letter before the demo replays or discards it. */
const DEAD_LETTER_SHOWN_MS = 75_000;
/** Time without a dead letter after which the demo reports the delay and keeps waiting. */
const DEAD_LETTER_LATE_MS = 300_000;
/** Time for which a worker with the refused batch is not killed, because its death delays the dead letter. */
const WORKER_SPARED_MS = 120_000;
const POLL_MS = 1_000;
/** On a busy machine a schema change waits for users of the table. */
const DROP_TRIES = 12;
/** Time for the last attempts of a purchase after MySQL stops refusing it. */
const ENDED_WITHIN_MS = 60_000;
/** Prefix of the demo's triggers. The rest of a name is random. */
const TRIGGER = 'seckill_demo_';
/** Node loads this module before the API. It kills the API at the point that `FAILPOINT` names. */
const FAIL_POINTS = pathToFileURL(join(REPO_DIR, 'test/chaos/preload/fail-points.mjs')).href;
/** Fail points at which the API dies and leaves a half message open, in turn. */
const DEATHS = ['after_deduct', 'after_half'] as const;

/** Causes and reports occasional faults. Signals only processes that this command has started. */
export class Faults {
  readonly #at: FaultWorld;
  readonly #done: Record<Fault, number> = { poisoned_batch: 0, half_message: 0, killed_worker: 0 };
  #loops: Promise<unknown> = Promise.resolve();
  #refused: DemoSale | null = null;
  /** The buyer whose purchase MySQL refused last. */
  #victim: Buyer | null = null;
  #deadLetters = 0;
  /** Whether a refused batch is on its way to its dead letter. */
  #isRefusing = false;

  constructor(at: FaultWorld) {
    this.#at = at;
  }

  /** Returns how often each fault occurred, and how many dead letters resulted. */
  get counts(): Readonly<Record<Fault | 'dead_letters', number>> {
    return { ...this.#done, dead_letters: this.#deadLetters };
  }

  start(): void {
    this.#loops = Promise.all([
      this.#again('poisoned_batch', () => this.#poison()),
      this.#again('killed_worker', () => this.#killWorker()),
      this.#again('half_message', () => this.#leaveHalfMessage()),
    ]);
  }

  /** Stops new faults and ends open faults: MySQL refuses nothing, and no dead letter of the demo is left. */
  async stop(): Promise<void> {
    await this.#loops;
    if (this.#refused === null) return;
    const untilMs = performance.now() + ENDED_WITHIN_MS;
    let isEnded = false;
    while (!isEnded && performance.now() < untilMs) {
      for (const deadLetterId of await this.#parked().catch(() => [])) await this.#end(deadLetterId, 'replay');
      const standing = (await this.#victim?.standing())?.status;
      isEnded = standing === 'ordered' || standing === 'failed' || this.#victim === null;
      if (!isEnded) await sleep(POLL_MS); // the last attempt is running, and ends as an order or a dead letter
    }
  }

  async #again(fault: Fault, act: () => Promise<void>): Promise<void> {
    const { stopping, report } = this.#at;
    const { firstMs, everyMs } = FAULT_TIMES[fault];
    let dueMs = performance.now() + firstMs;
    while (await this.#pause(dueMs - performance.now())) {
      dueMs = Math.max(dueMs + everyMs, performance.now());
      try {
        await act();
      } catch (error) {
        if (stopping.aborted) return;
        report(`The demo could not make its fault ${fault}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }

  #tell(fault: Fault, sentence: string, facts: Readonly<Record<string, string | number>>): void {
    this.#at.tell({ fault, sentence, ...facts });
  }

  /** Makes MySQL refuse the order of one buyer until it is a dead letter. */
  async #poison(): Promise<void> {
    const { world, mysql } = this.#at;
    this.#refused ??= await this.#refusedSale();
    const { saleId } = this.#refused;
    const buyer = new Buyer(offered(this.#refused), world);
    const trigger = `${TRIGGER}${randomBytes(6).toString('hex')}`;
    await mysql.execute(
      `CREATE TRIGGER ${trigger} BEFORE INSERT ON orders FOR EACH ROW
         IF NEW.user_id = '${buyer.userId}' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by the demo'; END IF`,
    );
    let deadLetterId: string | null = null;
    try {
      this.#isRefusing = true;
      if (!(await buyer.buys())) return;
      this.#victim = buyer;
      this.#done.poisoned_batch++;
      this.#tell(
        'poisoned_batch',
        `MySQL refuses an accepted purchase (key ${buyer.key}, sale ${saleId}): after five retries it is a dead letter. ` +
          'Look at the purchase in the console, or: seckill trace ' +
          buyer.key,
        { saleId, key: buyer.key },
      );
      deadLetterId = await this.#deadLetterOf(buyer.key);
    } finally {
      this.#isRefusing = false;
      await this.#drop(trigger); // from now on a replay creates an order
    }
    if (deadLetterId === null) return;
    this.#deadLetters++;
    const end = this.#deadLetters % 2 === 1 ? 'replay' : 'discard';
    this.#tell(
      'poisoned_batch',
      `Dead letter ${deadLetterId} waits for a person: console, Dead letters, or: seckill dlq show ${deadLetterId}. ` +
        `SeckillDeadLetterParked fires. If you do nothing, the demo will ${end} it in ${DEAD_LETTER_SHOWN_MS / 1000} s`,
      { saleId, key: buyer.key, deadLetterId },
    );
    if (!(await this.#pause(DEAD_LETTER_SHOWN_MS))) return;
    if ((await this.#parked()).includes(deadLetterId)) await this.#end(deadLetterId, end);
  }

  async #end(deadLetterId: string, how: 'replay' | 'discard'): Promise<void> {
    await this.#at.operators.order('POST', `/dead-letters/${deadLetterId}/${how}`);
    const became = how === 'replay' ? 'replayed: it is an order' : 'discarded: a failed order, and its unit is back';
    this.#tell('poisoned_batch', `Dead letter ${deadLetterId} was ${became}. The alert clears`, { deadLetterId, how });
  }

  /** @throws MysqlError of the last attempt */
  async #drop(trigger: string): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#at.mysql.execute(`DROP TRIGGER IF EXISTS ${trigger}`);
        return;
      } catch (error) {
        if (tries === DROP_TRIES) throw error;
        await sleep(POLL_MS); // even after the demo stops: a remaining trigger would refuse a replay
      }
    }
  }

  /** @returns null when the demo stops */
  async #deadLetterOf(key: string): Promise<string | null> {
    const lateMs = performance.now() + DEAD_LETTER_LATE_MS;
    let isLate = false;
    do {
      const [found] = await this.#parked(key).catch(() => []); // a busy API is asked again
      if (found !== undefined) return found;
      if (!isLate && performance.now() > lateMs) {
        isLate = true;
        this.#at.report(
          `The purchase ${key} did not become a dead letter after ${DEAD_LETTER_LATE_MS / 1000} s. See: seckill trace ${key}`,
        );
      }
    } while (await this.#pause(POLL_MS));
    return null;
  }

  /** Returns the parked dead letters of the sale. */
  async #parked(key?: string): Promise<string[]> {
    const which = new URLSearchParams({
      state: 'parked',
      saleId: this.#refused?.saleId ?? '',
      ...(key ? { key } : {}),
    });
    const { deadLetters } = await this.#at.operators.order('GET', `/dead-letters?${which.toString()}`);
    return (deadLetters as { readonly deadLetterId: string }[]).map(({ deadLetterId }) => deadLetterId);
  }

  /** Returns the sale once it is open, without triggers that a killed demo left behind. */
  async #refusedSale(): Promise<DemoSale> {
    const { mysql, operators } = this.#at;
    const left = await mysql.query<{ name: string }>(
      `SELECT TRIGGER_NAME AS name FROM information_schema.TRIGGERS
         WHERE TRIGGER_SCHEMA = DATABASE() AND LEFT(TRIGGER_NAME, ${TRIGGER.length}) = ?`,
      [TRIGGER],
    );
    for (const { name } of left) await mysql.execute(`DROP TRIGGER IF EXISTS ${name}`);
    const opensAtMs = Date.now();
    const times = { opensAtMs, closesAtMs: opensAtMs + REFUSED_SALE_OPEN_MS };
    const sale = await makeSale(operators, 'refused', REFUSED_SALE, times);
    const untilMs = performance.now() + SALE_OPEN_WITHIN_MS;
    while ((await operators.order('GET', `/sales/${sale.saleId}`)).state !== 'open') {
      if (performance.now() > untilMs) throw new Error(`the keeper does not open sale ${sale.saleId}`);
      if (!(await this.#pause(POLL_MS))) break;
    }
    return sale;
  }

  async #killWorker(): Promise<void> {
    const sparedMs = performance.now() + WORKER_SPARED_MS;
    while (this.#isRefusing && performance.now() < sparedMs) if (!(await this.#pause(POLL_MS))) return;
    const pid = this.#at.worker.kill();
    if (pid === null) return;
    this.#done.killed_worker++;
    this.#tell(
      'killed_worker',
      `The worker (pid ${pid}) was killed and starts again. Until then orders wait in the broker, and those that it held wait 10 s more. ` +
        'Look at console, Live: fewer orders land; or: seckill mq groups',
      { pid },
    );
  }

  /** Starts an extra API that takes one purchase and dies on the way. The other APIs continue. */
  async #leaveHalfMessage(): Promise<void> {
    const { world, apiEnv, report, sales } = this.#at;
    const sale = sales().find(({ name }) => name === 'steady');
    if (sale === undefined) return;
    const point = DEATHS[this.#done.half_message % DEATHS.length] as string;
    const spec: ProgramSpec = {
      name: 'api that is to die',
      args: ['api', '--port', '0', '--operators-port', '0'],
      env: { ...apiEnv, FAILPOINT: point, NODE_OPTIONS: `--import=${FAIL_POINTS}`, LOG_LEVEL: 'silent' },
      once: true,
    };
    const api = new SupervisedProgram(spec, report);
    try {
      const { facts } = await api.start();
      const buyer = new Buyer(offered(sale), world);
      const reply = await buyer.tries({ url: `http://127.0.0.1:${facts.port}` });
      if (reply !== null) return; // it refused the purchase, for example because the sale had just ended
      this.#done.half_message++;
      const held = point === 'after_deduct';
      this.#tell(
        'half_message',
        `An api died ${held ? 'between deduct and commit' : 'before deduct'} and left a half message open (key ${buyer.key}, sale ` +
          `${sale.saleId}). Look at: seckill mq halves. Within half a minute the broker checks back with another api, which ` +
          `${held ? 'commits it: an order' : 'rolls it back: no units were taken'}`,
        { saleId: sale.saleId, key: buyer.key, point },
      );
      // the buyer got no answer and safely repeats the same key
      if ((await buyer.buys()) && (await buyer.getsOrder())) await buyer.pays('card');
    } finally {
      await api.stop();
    }
  }

  /** @returns false when the demo stops */
  async #pause(ms: number): Promise<boolean> {
    const { stopping } = this.#at;
    await sleep(Math.max(0, ms), undefined, { signal: stopping }).catch(() => undefined);
    return !stopping.aborted;
  }
}

const offered = ({ saleId, limitPerBuyer }: DemoSale): OfferedSale => ({ saleId, limitPerBuyer, hasQueue: false });
