import { randomUUID } from 'node:crypto';
import { type Registry, Gauge } from 'prom-client';
import type { Config, Section } from '../../core/config/schema.js';
import type { Job } from '../../core/job.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import { createJobLeases } from '../../mysql/job-leases.js';
import type { MysqlPool } from '../../mysql/pool.js';
import type { BinlogStream, Committed } from '../../mysql/follow-binlog.js';
import { binlogProblem, readMysqlClock } from '../../mysql/read-facts.js';
import { createWitnessStore, type Found, type Judged, type WitnessPosition } from '../../mysql/witness-store.js';
import { judge } from './judge.js';

/** Pause between two runs. A finding is stored within this time. */
export const WITNESS_EVERY_MS = 1000;
/** Longer than a live keeper pauses between two runs. */
const LEASE_MS = 10_000;
/** The position is stored at least this often, so that the next keeper rereads little. */
const SAVE_EVERY_MS = 10_000;
/** Maximum number of findings that wait to be stored. With more, the stream pauses. */
const WAITING_MAX = 5000;
/** The lease is renewed every second, so a stream that has no event for this long is dead. */
const SILENT_MAX_MS = 30_000;
/** Transactions of this time before the position are judged again after a gap: their times are not in the order of the log. */
const TIMES_GO_BACK_MS = 10_000;
/** Transactions that cannot be read are reported again for the same reason after this time. */
const SAME_REASON_MS = 3_600_000;
const REASONS_MAX = 1000;
/** A purge goes by order id. A worker mints an id at most this long before it writes the row. */
const MADE_EARLIER_MS = 86_400_000;

interface Keeper {
  readonly mysql: MysqlPool;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
}

/** A name of its own, so that it is logged even during an outage of MySQL. */
class CannotFollow extends Error {
  override readonly name = 'CannotFollow';
}

/** Returns null if `WITNESS` is `off`. */
export const openWitnessJob = ({ keeper, mysql: server }: Config<'keeper' | 'mysql'>, parts: Keeper): Witness | null =>
  keeper.witness === 'off' ? null : new Witness(server, parts);

/**
 * Follows the binary log and judges each committed transaction. One keeper does it for all. The connection is its own, so
 * no sale waits for it.
 */
export class Witness implements Job {
  readonly name = 'witness';
  readonly #server: Section<'mysql'>;
  readonly #keeper: Keeper;
  readonly #leases;
  readonly #store;
  readonly #publish;
  readonly #owner = randomUUID();
  #stream: BinlogStream | null = null;
  /** Where the stream began. */
  #start: string | null = null;
  /** The time that the log must reach, Unix ms. 0: it has. */
  #judgeFromMs = 0;
  /** The stored position, and when it was stored. */
  #saved: WitnessPosition | null = null;
  #savedAtMs = -Infinity;
  /** The newest event, and when it was first seen here. */
  #newest: { readonly ms: number; readonly seenAtMs: number } = { ms: 0, seenAtMs: 0 };
  /** The open findings at the last look. */
  #open = 0;
  /** When the last look of this keeper succeeded. Null: it is not the witness. */
  #workedAtMs: number | null = null;
  /** Findings that are not stored yet, and whether anything was judged since the last save. */
  #waiting: Found[] = [];
  /** When each reason why transactions cannot be read was last stored. */
  readonly #unreadable = new Map<string, number>();
  #hasJudged = false;

  constructor(server: Section<'mysql'>, keeper: Keeper) {
    this.#server = server;
    this.#keeper = keeper;
    this.#leases = createJobLeases(keeper.mysql);
    this.#store = createWitnessStore(keeper.mysql);
    this.#publish = createWitnessMetrics(keeper.registry);
  }

  async runOnce(): Promise<void> {
    try {
      if (!(await this.#leases.hold(this.name, this.#owner, LEASE_MS))) {
        this.close();
        this.#workedAtMs = null;
        return this.#publish(null);
      }
      const nowMs = await readMysqlClock(this.#keeper.mysql);
      if (this.#stream === null) {
        const problem = await binlogProblem(this.#keeper.mysql);
        if (problem !== null) throw new CannotFollow(problem);
        this.#saved = await this.#store.position();
        await this.#follow(this.#saved?.position ?? null, nowMs);
      }
      await this.#look(nowMs);
      this.#workedAtMs = this.#keeper.clock.monotonicMs();
      this.#open = await this.#store.open();
      this.#publish({ open: this.#open, behindMs: Math.max(0, nowMs - this.#newest.ms) });
    } catch (error) {
      this.close(); // the next run continues from the stored position
      const { clock } = this.#keeper;
      this.#workedAtMs ??= clock.monotonicMs();
      this.#publish({ open: this.#open, behindMs: clock.monotonicMs() - this.#workedAtMs }); // so that an alert notices the standstill
      throw error;
    }
  }

  /** Forgets what is not stored: the next stream reads it again. */
  close(): void {
    this.#stream?.stop();
    this.#stream = null;
    this.#waiting = [];
    this.#hasJudged = false;
  }

  /** @param judgeFromMs nothing is judged or stored before the log reaches this time */
  async #follow(start: string | null, nowMs: number, judgeFromMs = 0): Promise<void> {
    const { followBinlog } = await import('../../mysql/follow-binlog.js'); // the other programs do not load the library
    this.#newest = { ms: nowMs, seenAtMs: this.#keeper.clock.monotonicMs() };
    this.#keeper.log.info({ position: start }, 'the witness follows the binary log');
    this.#start = start;
    this.#judgeFromMs = judgeFromMs;
    this.#stream = followBinlog(this.#server, start, (transaction) => {
      const { place, atMs: committedAtMs } = transaction;
      if (!this.#reaches(committedAtMs)) return;
      for (const judged of findingsOf(transaction)) this.#waiting.push({ ...judged, place, committedAtMs });
      this.#hasJudged = true;
      if (this.#waiting.length > WAITING_MAX) this.#stream?.pause();
    });
  }

  /** The log may go back in time later: a restore writes the times of its backup. */
  #reaches(atMs: number): boolean {
    if (atMs >= this.#judgeFromMs) this.#judgeFromMs = 0;
    return this.#judgeFromMs === 0;
  }

  async #look(nowMs: number): Promise<void> {
    const stream = this.#stream;
    const seenAtMs = this.#keeper.clock.monotonicMs();
    const ms = stream?.newestMs() ?? this.#newest.ms;
    if (ms !== this.#newest.ms) this.#newest = { ms, seenAtMs };
    const isDue = this.#hasJudged || seenAtMs - this.#savedAtMs > SAVE_EVERY_MS;
    if (isDue && this.#reaches(stream?.newestMs() ?? 0))
      await this.#save(stream?.position() ?? null, stream?.newestMs() ?? this.#saved?.readToMs ?? nowMs);
    const failure = stream?.failure() ?? null;
    if (failure !== null) return this.#failed(failure, nowMs);
    if (seenAtMs - this.#newest.seenAtMs > SILENT_MAX_MS) throw new Error('the binary log has had no event for 30 s');
    stream?.resume();
  }

  async #save(position: string | null, readToMs: number): Promise<void> {
    if (position === null) return;
    const { clock, log } = this.#keeper;
    const waiting = this.#waiting; // of the same moment as the position
    [this.#waiting, this.#hasJudged] = [[], false];
    const found = this.#onceAnHour(await this.#withoutPurged(waiting), clock.monotonicMs());
    this.#saved = await this.#store.save(this.#saved, { position, readToMs }, found);
    this.#savedAtMs = clock.monotonicMs();
    // not before, because after an error the stream reads them again
    if (this.#saved !== null) this.#noteReasons(found, this.#savedAtMs);
    if (this.#saved === null) {
      log.warn({}, 'another keeper is the witness now');
      this.close();
    } else if (found.length > 0) {
      log.error({ found: found.length, first: found[0]?.detail }, 'the witness found changes that no program makes');
    }
  }

  /** A setting may make every transaction unreadable. Its findings must not bury the others. */
  #onceAnHour(found: readonly Found[], nowMs: number): Found[] {
    const isOld = (reason: string): boolean => nowMs - (this.#unreadable.get(reason) ?? -Infinity) > SAME_REASON_MS;
    const reasons = new Set<string>();
    const isNew = (reason: string): boolean => isOld(reason) && reasons.size < reasons.add(reason).size;
    return found.filter(({ kind, detail }) => kind !== 'not_readable' || isNew(detail));
  }

  #noteReasons(stored: readonly Found[], nowMs: number): void {
    if (this.#unreadable.size > REASONS_MAX) this.#unreadable.clear();
    for (const { kind, detail } of stored) if (kind === 'not_readable') this.#unreadable.set(detail, nowMs);
  }

  async #withoutPurged(waiting: readonly Found[]): Promise<readonly Found[]> {
    if (waiting.every(({ newestMs }) => newestMs === undefined)) return waiting;
    const purgedMs = (await this.#store.purgedBeforeMs()) + MADE_EARLIER_MS;
    return waiting.filter(({ newestMs = Infinity }) => newestMs >= purgedMs);
  }

  /**
   * If the log does not have the position, that is a finding, and all that the log has is read. If the log cannot be read
   * from its beginning either, the witness continues at its end.
   */
  async #failed(failure: Error, nowMs: number): Promise<void> {
    const { isLost, OLDEST } = await import('../../mysql/follow-binlog.js');
    if (!isLost(failure) || this.#saved === null) throw failure;
    const { position, readToMs } = this.#saved;
    const since = new Date(readToMs).toISOString();
    const start = this.#start === OLDEST ? null : OLDEST;
    this.close();
    await this.#follow(start, nowMs, start === null ? 0 : readToMs - TIMES_GO_BACK_MS);
    const read = start === null ? 'nothing was judged' : 'only what the log still has was judged';
    const gap = `the binary log cannot be read from ${position.slice(-POSITION_SHOWN)} (${failure.message})`;
    const detail = `${gap}: from ${since} to ${new Date(nowMs).toISOString()}, ${read}`;
    this.#waiting.push({ ...NO_ROW, kind: 'not_seen', detail, place: String(nowMs), committedAtMs: nowMs });
    this.#hasJudged = true;
  }
}

/** Characters of a position in a finding. The GTIDs of many servers make it long. */
const POSITION_SHOWN = 300;
const NO_ROW = { subject: 'binlog', orderId: null, saleId: null } as const;

function findingsOf({ changes, unreadable }: Committed): Judged[] {
  if (unreadable === null) return judge(changes);
  return [{ ...NO_ROW, kind: 'not_readable', detail: `a transaction whose rows cannot be judged: ${unreadable}` }];
}

export function createWitnessMetrics(registry: Registry) {
  const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers: [registry] });
  const open = gauge('seckill_witness_findings', 'Open findings of the witness, counted up to 10000. Alert on any.');
  const behind = gauge('seckill_witness_behind_seconds', 'Age of the newest change that the witness has read.');
  const clear = (): void => [open, behind].forEach((one) => one.remove()); // `reset` would set it to 0
  clear();
  /** Null: another keeper is the witness, or there is none. */
  return (figures: { readonly open: number; readonly behindMs: number } | null): void => {
    if (figures === null) return clear();
    open.set(figures.open);
    behind.set(figures.behindMs / 1000);
  };
}
