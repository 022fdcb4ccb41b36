import type { Snapshot } from '../../contract/live.js';
import { assert, OperationalError } from '../../core/errors.js';
import { bugLog } from '../../core/job.js';
import type { SeenProgram } from '../../core/vanished-programs.js';
import { mergedConditions, type Condition } from '../../core/conditions.js';
import { withoutPoint } from '../../core/text.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { LiveProgram, OwnReport, ProgramReports } from '../../core/ports/program-reports.js';
import type { LiveSales } from './live-sales.js';

export interface LiveSnapshotsParts {
  readonly sales: LiveSales;
  readonly programs: ProgramReports;
  /** The last report of this api. Null if there is none yet. */
  readonly own: () => OwnReport | null;
  readonly clock: Clock;
  readonly log: Log;
}

/** Receives each snapshot as the text of an event, encoded once for all listeners. */
export type SendEvent = (event: Buffer) => void;

/** A condition that no program reports. */
interface Seen extends Omit<Condition, 'key' | 'severity' | 'sinceMs'> {
  /** When it began, Unix ms. Null if that is unknown. */
  readonly beganMs: number | null;
  /** How long it lasts before it becomes urgent. */
  readonly forMs: number;
}

const EVERY_MS = 1000;
/** Three report intervals, because a single slow answer of a server is not an outage. */
const NOT_READY_MS = 6_000;
/** A restart takes less time. */
const VANISHED_MS = 60_000;
const VANISHED_SHOWN_MAX = 20;

/** Sends a snapshot to all listeners every second. A slow snapshot delays the next. A failed snapshot is left out. */
export class LiveSnapshots {
  readonly #parts: LiveSnapshotsParts;
  readonly #listenersMax: number;
  readonly #onBug: (error: unknown) => void;
  readonly #listeners = new Set<SendEvent>();
  /** When this api first saw each condition whose beginning it does not know, Unix ms. */
  #firstSeenMs = new Map<string, number>();
  #stop: AbortController | null = null;
  #last: { readonly event: Buffer; readonly monotonicMs: number } | null = null;

  constructor(parts: LiveSnapshotsParts, listenersMax: number) {
    this.#parts = parts;
    this.#listenersMax = listenersMax;
    this.#onBug = bugLog('could not make a live snapshot for the consoles', parts);
  }

  get listening(): number {
    return this.#listeners.size;
  }

  get isFull(): boolean {
    return this.#listeners.size >= this.#listenersMax;
  }

  /** Call it only if not `isFull`. @param send gets a recent snapshot at once. @returns removes the listener */
  follow(send: SendEvent): () => void {
    assert(!this.isFull, 'too many listeners');
    this.#listeners.add(send);
    if (this.#last !== null && this.#parts.clock.monotonicMs() - this.#last.monotonicMs < EVERY_MS) {
      send(this.#last.event);
    }
    if (this.#stop === null) {
      this.#stop = new AbortController();
      void this.#run(this.#stop.signal);
    }
    return () => {
      this.#listeners.delete(send);
      if (this.#listeners.size > 0) return;
      this.#stop?.abort();
      this.#stop = null;
      this.#firstSeenMs.clear(); // conditions that end while nobody listens go unseen
    };
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      const begunMs = clock.monotonicMs();
      try {
        const event = Buffer.from(`event: snapshot\ndata: ${JSON.stringify(await this.#make())}\n\n`);
        if (signal.aborted) return;
        this.#last = { event, monotonicMs: clock.monotonicMs() };
        for (const send of this.#listeners) send(event);
      } catch (error) {
        this.#onBug(error);
      }
      await clock.sleep(Math.max(0, begunMs + EVERY_MS - clock.monotonicMs()), signal);
    }
  }

  async #make(): Promise<Snapshot> {
    const missing: string[] = [];
    const orNull = (error: unknown): null => {
      if (!(error instanceof OperationalError)) throw error;
      missing.push(error.message);
      return null;
    };
    const [live, read, vanished] = await Promise.all([
      this.#parts.sales.look(),
      this.#parts.programs.live().catch(orNull),
      this.#parts.programs.vanished().catch(orNull),
    ]);
    const own = this.#parts.own();
    const programs = this.#withOwn(read ?? [], own);
    const refusal = own?.refusal ?? null;
    const why = missing[0] ?? refusal?.why ?? null;
    const unknown = why === null ? null : { why, sinceMs: refusal?.sinceMs ?? null };
    const conditions = this.#conditionsOf(programs, vanished ?? [], unknown);
    return {
      atMs: Math.round(this.#parts.clock.nowMs()),
      everyMs: EVERY_MS,
      sales: live.sales.map((sale) => ({ ...sale, waiting: waitingIn(programs, sale.saleId) })),
      moreSales: live.moreSales,
      programs: programs.map(({ conditions: _conditions, waiting: _waiting, ...program }) => program),
      conditions,
      missing: [...new Set([...live.missing, ...missing])],
    };
  }

  /** Shows the current report of this api, because Redis may have lost it or may refuse newer ones. */
  #withOwn(programs: readonly LiveProgram[], own: OwnReport | null): readonly LiveProgram[] {
    if (own === null) return programs;
    const { report, atMs } = own;
    const others = programs.filter(({ kind, id }) => kind !== report.kind || id !== report.id);
    return [{ ...report, seenMsAgo: Math.round(this.#parts.clock.monotonicMs() - atMs) }, ...others];
  }

  /** Adds conditions that only an outsider sees. @param unknown why programs may be missing and since when, or null */
  #conditionsOf(
    programs: readonly LiveProgram[],
    vanished: readonly SeenProgram[],
    unknown: { readonly why: string; readonly sinceMs: number | null } | null,
  ): Condition[] {
    const nowMs = Math.round(this.#parts.clock.nowMs());
    const before = this.#firstSeenMs;
    this.#firstSeenMs = new Map();
    const own = (key: string, { forMs, beganMs, ...parts }: Seen): Condition => {
      const firstSeenMs = before.get(key) ?? nowMs;
      this.#firstSeenMs.set(key, firstSeenMs);
      const sinceMs = beganMs ?? firstSeenMs;
      return { key, ...parts, severity: nowMs - sinceMs >= forMs ? 'page' : 'info', sinceMs };
    };
    const notReady = programs
      .filter(({ ready }) => !ready)
      .map(({ kind, id, problems, notReadySinceMs: beganMs }) => {
        const text = `The ${kind} ${id} is not ready. ${problems.join(' ')}`.trimEnd();
        return own(`ProgramNotReady ${id}`, { name: 'ProgramNotReady', about: id, text, beganMs, forMs: NOT_READY_MS });
      });
    const seen = [...programs.flatMap(({ conditions }) => conditions), ...notReady];
    if (unknown !== null) {
      const text = `Other programs may run unseen, because Redis does not keep their reports: ${withoutPoint(unknown.why)}.`;
      const { sinceMs: beganMs } = unknown;
      seen.push(
        own('ProgramsUnknown', { name: 'ProgramsUnknown', about: 'redis', text, beganMs, forMs: NOT_READY_MS }),
      );
    } else {
      for (const { kind: missing, name, text, afterMs: forMs } of ABSENT) {
        if (programs.some(({ kind }) => kind === missing)) continue;
        const lastSeenMs = vanished.flatMap(({ kind, seenAtMs }) => (kind === missing ? [seenAtMs] : []));
        const beganMs = lastSeenMs.length === 0 ? null : Math.max(...lastSeenMs);
        seen.push(own(name, { name, about: null, text, beganMs, forMs }));
      }
      for (const program of vanished.slice(0, VANISHED_SHOWN_MAX)) seen.push(goneOf(program, nowMs));
    }
    return mergedConditions(seen);
  }
}

/** Every api reports the whole line of a sale, but some reports are older than others. */
function waitingIn(programs: readonly LiveProgram[], saleId: string): number | null {
  const reported = programs.flatMap(({ waiting }) => waiting[saleId] ?? []);
  return reported.length === 0 ? null : Math.max(...reported);
}

/** Alerts for a kind of program that does not run at all, and how long a restart may take. */
const ABSENT = [
  {
    kind: 'worker',
    name: 'SeckillWorkerAbsent',
    text: 'No worker runs. Buyers can buy, but no purchase becomes an order.',
    afterMs: 60_000,
  },
  {
    kind: 'keeper',
    name: 'SeckillKeeperAbsent',
    text: 'No keeper runs, so overdue work is neither done nor counted.',
    afterMs: 120_000,
  },
] as const;

const goneOf = ({ kind, id, seenAtMs }: SeenProgram, nowMs: number): Condition => ({
  key: `SeckillProgramDown ${kind} ${id}`,
  name: 'SeckillProgramDown',
  severity: nowMs - seenAtMs >= VANISHED_MS ? 'ticket' : 'info',
  about: id,
  text: `The ${kind} ${id} vanished, and no new ${kind} has taken its place.`,
  sinceMs: seenAtMs,
});
