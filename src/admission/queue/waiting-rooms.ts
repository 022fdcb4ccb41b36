import { assertNever, Bug, OperationalError } from '../../core/errors.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Line, LineStore, LineTerms, PerClass, TicketPlace } from '../../core/ports/line-store.js';
import { modeFor } from '../layer.js';
import type { AdmissionMetrics, RoomMetrics } from '../metrics.js';
import type { Seals, SealOf } from '../sign/seals.js';
import { CLASSES, classOf, readClass, type PriorityClass, type QueueRules } from './queue-rules.js';

/** Longest interval between two polls, ms. */
export const INTERVAL_MAX_MS = 60_000;
/** Added per buyer ahead. With it, 500,000 waiting buyers poll less than 30,000 times a second. */
const PER_PLACE_MS = 0.15;
/** Added per waiting buyer before a draw. No buyer has a place yet, so all have the same interval. */
const PER_WAITING_MS = 0.04;

/** Returns when a waiting buyer should poll again, ms. @param position from 1; null before the draw */
export function pollInterval(position: number | null, waiting: number, shortestMs: number): number {
  const grownMs = position === null ? waiting * PER_WAITING_MS : shortestMs + position * PER_PLACE_MS;
  return Math.round(Math.max(shortestMs, Math.min(INTERVAL_MAX_MS, grownMs)));
}

export interface QueueSale {
  readonly saleId: string;
  readonly opensAtMs: number;
}

export interface QueueBuyer {
  readonly userId: string;
  /** The roles in the token, which determine the class. */
  readonly roles: readonly string[];
}

/**
 * - `no_queue`: buyers of this sale need not wait; buy
 * - `waiting`: poll again after `pollMs` with the ticket, which is new each time
 * - `admitted`: buy with this pass until it expires
 * - `overloaded`: too many buyers wait for this sale
 */
export type QueueAnswer =
  | {
      readonly outcome: 'waiting';
      readonly ticket: string;
      readonly priority: (typeof CLASSES)[number];
      /** The place, from 1. Null before the opening of a sale whose order is drawn by lot. */
      readonly position: number | null;
      /** Time until the buyer's turn, at the current rate, ms. Null if unknown. */
      readonly estimateMs: number | null;
      readonly pollMs: number;
    }
  | { readonly outcome: 'admitted'; readonly pass: string; /** Unix ms. */ readonly untilMs: number }
  | { readonly outcome: 'no_queue' | 'sold_out' | 'overloaded' };

/** `ticket_not_found` means that the ticket does not belong to this buyer and sale, or has ended: join again. */
export type TicketAnswer = QueueAnswer | { readonly outcome: 'ticket_not_found' };

/** Interval at which a process reads the lines in use. A buyer is admitted at most this much too late. */
const TICK_MS = 200;
/** The interval while no room is in use. The first buyers of a room wait this long at most. */
const IDLE_TICK_MS = 1000;
/** A line that was read longer ago than this is read again before it is shown. */
const FRESH_MS = 1000;
/** If a line gets no poll for this long, its buyers have left. A buyer who returns joins anew. */
const UNUSED_MS = 2 * INTERVAL_MAX_MS;

/** The state of a room as this process last read it. The room itself is in the store. */
interface KnownRoom {
  readonly sale: QueueSale;
  line: Line | null;
  /** When the line was read, on the monotonic clock. */
  readMs: number;
  /** When a buyer last polled, on the monotonic clock. */
  usedMs: number;
  /** The read under way, which all callers share. */
  reading: Promise<void> | null;
}

interface RoomParts {
  readonly rules: () => QueueRules;
  readonly seals: Seals;
  readonly store: LineStore;
  /** Whether this process knows that nothing is left. Called for each ticket. */
  readonly isSoldOut: (saleId: string) => boolean;
  readonly clock: Clock;
  readonly metrics: RoomMetrics;
}

/**
 * The store holds one line per sale for all processes and admits buyers at the rate of the rules. A ticket contains the
 * number of a place, under our seal. A buyer whose number is above the last admitted number waits. Every process knows
 * this without a call, from the line that it read last.
 */
export class WaitingRooms {
  readonly #parts: RoomParts;
  readonly #rooms = new Map<string, KnownRoom>();

  constructor(parts: RoomParts) {
    this.#parts = parts;
  }

  /** Number of waiting buyers in all rooms that this process knows. */
  get waiting(): number {
    return [...this.#rooms.values()].reduce((sum, { line }) => sum + waitingIn(line), 0);
  }

  /** Number of waiting buyers by sale, for the sales whose rooms this process knows. */
  get waitingBySale(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#rooms].map(([saleId, { line }]) => [saleId, waitingIn(line)]));
  }

  /** Whether buyers of this sale should join first. True even in a dry run, so that the queue can be tested. */
  isFor(saleId: string): boolean {
    return modeFor(this.#parts.rules(), saleId) !== 'off';
  }

  /** Returns the buyer's place, or a new one at the end. @throws OperationalError redis */
  async join(sale: QueueSale, { userId, roles }: QueueBuyer): Promise<QueueAnswer> {
    const closed = this.#closed(sale.saleId);
    if (closed !== null) return closed;
    const answer = await this.#take(sale, userId, classOf(roles), null);
    if (answer.outcome === 'ticket_not_found') throw new Bug('a buyer without a ticket cannot get `ticket_not_found`');
    return answer;
  }

  /** Calls the store only if the line is old, or the buyer's turn may have come. @throws OperationalError redis */
  async read(sale: QueueSale, { userId }: Pick<QueueBuyer, 'userId'>, ticket: string): Promise<TicketAnswer> {
    const closed = this.#closed(sale.saleId);
    if (closed !== null) return closed;
    const place = this.#openTicket(ticket, { kind: 'queue-place', saleId: sale.saleId, userId });
    if (place === null) return { outcome: 'ticket_not_found' };
    const line = await this.#lineOf(sale);
    const admitted = Math.max(line.admitted[place.priority], place.admitted);
    const mustWait = line.epoch === place.epoch && (place.number === 0 ? !line.opened : place.number > admitted);
    const isKnown = place.number <= line.joined[place.priority]; // a fail-over may have lost the number
    if (mustWait && isKnown) return this.#waiting(sale, userId, place, line);
    return this.#take(sale, userId, place.priority, place);
  }

  /** Forgets the room of a sale that has no units left. */
  end(saleId: string): void {
    this.#rooms.delete(saleId);
  }

  /**
   * Reads the lines in use, and forgets the others. Never rejects because the store is down.
   * @returns ms until the next run: long without a room, because the first buyer of a room has its line read
   */
  async runOnce(): Promise<number> {
    const unusedSinceMs = this.#parts.clock.monotonicMs() - UNUSED_MS;
    for (const [saleId, { usedMs }] of this.#rooms) {
      if (usedMs < unusedSinceMs || !this.isFor(saleId) || this.#parts.isSoldOut(saleId)) this.end(saleId);
    }
    await Promise.all([...this.#rooms.values()].map(async (room) => this.#refresh(room).catch(ignoreOutage)));
    return this.#rooms.size === 0 ? IDLE_TICK_MS : TICK_MS;
  }

  /** Returns why there is nothing to wait for. Null if buyers should wait. */
  #closed(saleId: string): QueueAnswer | null {
    if (!this.isFor(saleId)) return { outcome: 'no_queue' };
    if (!this.#parts.isSoldOut(saleId)) return null;
    this.end(saleId);
    return { outcome: 'sold_out' };
  }

  #roomOf(sale: QueueSale): KnownRoom {
    const known = this.#rooms.get(sale.saleId);
    const usedMs = this.#parts.clock.monotonicMs();
    const room = { line: null, readMs: -Infinity, reading: null, ...known, sale, usedMs };
    if (known !== undefined && known.sale.opensAtMs === sale.opensAtMs) {
      known.usedMs = usedMs;
      return known;
    }
    this.#rooms.set(sale.saleId, room);
    return room;
  }

  /** Reads the line unless it was read recently. While the store is down, returns the last reading. */
  async #lineOf(sale: QueueSale): Promise<Line> {
    const room = this.#roomOf(sale);
    if (room.line === null || this.#parts.clock.monotonicMs() - room.readMs > FRESH_MS) {
      await this.#refresh(room).catch((error: unknown) => {
        if (room.line === null) throw error;
        ignoreOutage(error);
      });
    }
    return room.line as unknown as Line;
  }

  #refresh(room: KnownRoom): Promise<void> {
    room.reading ??= this.#parts.store
      .read(this.#termsOf(room.sale), room.line)
      .then((line) => this.#note(room, line))
      .finally(() => (room.reading = null));
    return room.reading;
  }

  #note(room: KnownRoom, line: Line): void {
    const nowMs = this.#parts.clock.monotonicMs();
    if (room.line !== null && isOlder(line, room.line)) return; // this answer has been overtaken
    if (room.line !== null)
      this.#parts.metrics.moved(room.line, line, this.#parts.rules().admitPerSecond, nowMs - room.readMs);
    room.line = line;
    room.readMs = nowMs;
  }

  async #take(
    sale: QueueSale,
    userId: string,
    priority: PriorityClass,
    ticket: TicketPlace | null,
  ): Promise<TicketAnswer> {
    const room = this.#roomOf(sale);
    const { ticketsMax: waitingMax, passMs } = this.#parts.rules();
    const lot = this.#parts.seals.lot(sale.saleId, userId);
    const ask = { userId, priority, lot, ticket, waitingMax, passMs };
    const taken = await this.#parts.store.take(this.#termsOf(sale), room.line, ask);
    this.#note(room, taken.line);
    const { word, untilMs, number, line } = taken;
    switch (word) {
      case 'ended':
        return { outcome: 'ticket_not_found' };
      case 'overloaded':
        return { outcome: word };
      case 'admitted': {
        const pass = this.#parts.seals.seal({ kind: 'queue-pass', saleId: sale.saleId, userId }, [untilMs]);
        return { outcome: word, pass, untilMs };
      }
      case 'waiting': {
        const place = { epoch: line.epoch, number, admitted: ticket?.admitted ?? 0 };
        return this.#waiting(sale, userId, { ...place, priority: taken.priority as PriorityClass }, line);
      }
      default:
        return assertNever(word);
    }
  }

  #waiting({ saleId, opensAtMs }: QueueSale, userId: string, place: Place, line: Line): QueueAnswer {
    const { priority, epoch, number } = place;
    const { idleMs, pollMs: shortestMs, admitPerSecond } = this.#parts.rules();
    // Another process may have shown this buyer a newer line.
    const admitted = Math.max(line.admitted[priority], place.admitted);
    const before = CLASSES.slice(0, priority).reduce(
      (sum, _, ahead) => sum + line.joined[ahead as PriorityClass] - line.admitted[ahead as PriorityClass],
      0,
    );
    const position = number === 0 ? null : before + Math.max(1, number - admitted);
    const nowMs = this.#parts.clock.nowMs();
    const turnMs = position === null || admitPerSecond === 0 ? null : Math.ceil((position * 1000) / admitPerSecond);
    const estimateMs = turnMs === null ? null : turnMs + (line.opened ? 0 : Math.max(0, opensAtMs - nowMs));
    const pollMs = pollInterval(position, waitingIn(line), shortestMs);
    const fields = [priority, epoch, number, admitted, nowMs + pollMs + idleMs];
    const ticket = this.#parts.seals.seal({ kind: 'queue-place', saleId, userId }, fields);
    return { outcome: 'waiting', ticket, priority: CLASSES[priority], position, estimateMs, pollMs };
  }

  #termsOf({ saleId, opensAtMs }: QueueSale): LineTerms {
    const { order, admitPerSecond: perSecond, idleMs } = this.#parts.rules();
    return { saleId, opensAtMs, byLot: order === 'lot', perSecond, turnMs: INTERVAL_MAX_MS + idleMs };
  }

  #openTicket(ticket: string, of: SealOf): Place | null {
    const [first, ...rest] = this.#parts.seals.open(of, ticket) ?? [];
    const [epoch = 0, number = 0, admitted = 0, untilMs = 0] = rest.map(Number);
    const priority = readClass(first);
    return priority === null || untilMs <= this.#parts.clock.nowMs() ? null : { priority, epoch, number, admitted };
  }
}

interface Place extends TicketPlace {
  readonly priority: PriorityClass;
}

export const waitingIn = (line: Line | null): number => (line === null ? 0 : sumOf(line.joined) - sumOf(line.admitted));

export const sumOf = ([first, second, third]: PerClass): number => first + second + third;

const isOlder = (line: Line, known: Line): boolean =>
  line.epoch < known.epoch || (line.epoch === known.epoch && sumOf(line.admitted) < sumOf(known.admitted));

/** @throws unless it is an outage */
function ignoreOutage(error: unknown): void {
  if (!(error instanceof OperationalError)) throw error;
}

interface QueuePassesParts {
  readonly rules: () => QueueRules;
  readonly seals: Seals;
  readonly clock: Clock;
  readonly metrics: AdmissionMetrics;
}

/** A buyer without a pass must first go to the waiting room. Calls no server, stores nothing. */
export class QueuePasses {
  readonly #parts: QueuePassesParts;

  constructor(parts: QueuePassesParts) {
    this.#parts = parts;
  }

  /**
   * @param pass the header `Seckill-Queue-Pass`
   * @returns null to proceed
   */
  check(saleId: string, userId: string, pass: string | string[] | undefined): 'forbidden' | null {
    const mode = modeFor(this.#parts.rules(), saleId);
    if (mode === 'off') return null;
    const flaw = this.#flawOf(saleId, userId, pass);
    if (flaw === null) return null;
    this.#parts.metrics.refused('queue', flaw, mode);
    return mode === 'on' ? 'forbidden' : null;
  }

  #flawOf(
    saleId: string,
    userId: string,
    pass: string | string[] | undefined,
  ): 'no_pass' | 'bad_pass' | 'ended' | null {
    if (pass === undefined) return 'no_pass';
    const fields = this.#parts.seals.open({ kind: 'queue-pass', saleId, userId }, String(pass));
    if (fields === null) return 'bad_pass';
    return Number(fields[0]) > this.#parts.clock.nowMs() ? null : 'ended';
  }
}
