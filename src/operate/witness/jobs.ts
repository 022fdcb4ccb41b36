import { randomUUID } from 'node:crypto';
import type { Registry } from 'prom-client';
import type { Config, Section } from '../../core/config/schema.js';
import type { Job } from '../../core/job.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import { createJobLeases } from '../../mysql/job-leases.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { readMysqlClock } from '../../mysql/read-facts.js';
import type { BinlogStream, Committed } from './follow-binlog.js';
import { judge, type Judged } from './judge.js';
import { createWitnessMetrics } from './metrics.js';
import { createWitnessStore, type Found, type WitnessPosition } from './witness-store.js';

/** Pause between two looks. A finding is stored within this time. */
export const WITNESS_EVERY_MS = 1000;
/** Longer than a live keeper pauses between two looks. */
const LEASE_MS = 10_000;
/** The position is stored at least this often, so that a keeper that takes over reads little again. */
const SAVE_EVERY_MS = 10_000;
/** Findings that wait to be stored. The stream pauses beyond. */
const WAITING_MAX = 5000;
/** The lease is renewed every second, so a stream that has no event for this long is dead. */
const SILENT_MAX_MS = 30_000;
/** A purge goes by order id. A worker makes the id before the row, at most this long. */
const MADE_EARLIER_MS = 86_400_000;

interface Keeper {
  readonly mysql: MysqlPool;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
}

/** Returns null unless `WITNESS` is `watch`. */
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
      this.#publish({ open: this.#open, behindMs: clock.monotonicMs() - this.#workedAtMs }); // an alert sees that it stands
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

  async #follow(position: string | null, nowMs: number): Promise<void> {
    const { followBinlog } = await import('./follow-binlog.js'); // the other programs do not load the library
    this.#newest = { ms: nowMs, seenAtMs: this.#keeper.clock.monotonicMs() };
    this.#keeper.log.info({ position }, 'the witness follows the binary log');
    this.#stream = followBinlog(this.#server, position, (transaction) => {
      const { place, atMs: committedAtMs } = transaction;
      for (const judged of findingsOf(transaction)) this.#waiting.push({ ...judged, place, committedAtMs });
      this.#hasJudged = true;
      if (this.#waiting.length > WAITING_MAX) this.#stream?.pause();
    });
  }

  async #look(nowMs: number): Promise<void> {
    const stream = this.#stream;
    const failure = stream?.failure() ?? null;
    if (failure !== null) return this.#failed(failure, nowMs);
    const { clock } = this.#keeper;
    const seenAtMs = clock.monotonicMs();
    const ms = stream?.newestMs() ?? this.#newest.ms;
    if (ms !== this.#newest.ms) this.#newest = { ms, seenAtMs };
    if (seenAtMs - this.#newest.seenAtMs > SILENT_MAX_MS) throw new Error('the binary log has had no event for 30 s');
    if (this.#hasJudged || seenAtMs - this.#savedAtMs > SAVE_EVERY_MS) await this.#save(stream?.position() ?? null);
    stream?.resume();
  }

  async #save(position: string | null): Promise<void> {
    if (position === null) return;
    const { clock, log } = this.#keeper;
    const waiting = this.#waiting; // of the same moment as the position
    [this.#waiting, this.#hasJudged] = [[], false];
    const found = await this.#withoutPurged(waiting);
    this.#saved = await this.#store.save(this.#saved, position, found);
    this.#savedAtMs = clock.monotonicMs();
    if (this.#saved === null) {
      log.warn({}, 'another keeper is the witness now');
      this.close();
    } else if (found.length > 0) {
      log.error({ found: found.length, first: found[0]?.detail }, 'the witness found changes that no program makes');
    }
  }

  async #withoutPurged(waiting: readonly Found[]): Promise<readonly Found[]> {
    if (waiting.every(({ newestMs }) => newestMs === undefined)) return waiting;
    const purgedMs = (await this.#store.purgedBeforeMs()) + MADE_EARLIER_MS;
    return waiting.filter(({ newestMs = Infinity }) => newestMs >= purgedMs);
  }

  /** If the log no longer has the position, the gap is a finding, and the witness continues at the end of the log. */
  async #failed(failure: Error, nowMs: number): Promise<void> {
    const { isLost } = await import('./follow-binlog.js');
    if (!isLost(failure) || this.#saved === null) throw failure;
    this.close();
    await this.#follow(null, nowMs);
    const detail = `the binary log no longer has what follows ${this.#saved.position}`.slice(0, 1000);
    const gap = { ...NO_ROW, kind: 'not_seen', subject: 'binlog', detail } as const;
    this.#waiting.push({ ...gap, place: String(nowMs), committedAtMs: nowMs });
    this.#hasJudged = true;
  }
}

const NO_ROW = { orderId: null, saleId: null } as const;

function findingsOf({ changes, unreadable }: Committed): Judged[] {
  if (unreadable === null) return judge(changes);
  const detail = `a transaction whose rows cannot be judged: ${unreadable}`;
  return [{ ...NO_ROW, kind: 'not_readable', subject: 'binlog', detail }];
}
