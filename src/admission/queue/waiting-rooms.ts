import type { Clock } from '../../core/ports/clock.js';
import type { Seals, SealOf } from '../sign/seals.js';
import { covers } from '../layer.js';
import { CLASSES, classOf, readClass, type PriorityClass, type QueueRules } from './queue-rules.js';
import { Room, type Waiter } from './room.js';
import { TimingWheel } from './timing-wheel.js';
import type { AdmissionMetrics } from '../../core/ports/admission-metrics.js';

export interface WaitingRoomsParts {
  readonly rules: () => QueueRules;
  readonly seals: Seals;
  /** Whether this process knows that nothing is left; asked for each ticket. */
  readonly isSoldOut: (saleId: string) => boolean;
  /** A whole number from 0 to below `max`, each as likely and not to be guessed. */
  readonly pick: (max: number) => number;
  readonly clock: Pick<Clock, 'nowMs'>;
}

export interface QueueSale {
  readonly saleId: string;
  readonly opensAtMs: number;
}

export interface QueueBuyer {
  readonly userId: string;
  /** From the token; they give the class. */
  readonly roles: readonly string[];
}

/**
 * - `no_queue`: nobody waits for this sale; buy
 * - `waiting`: come back after `pollMs` and show the ticket, which is a new one each time
 * - `admitted`: buy with this pass, until it ends
 * - `ticket_not_found`: not a ticket of this buyer and sale, or it has ended; join again
 * - `overloaded`: too many wait in this process
 */
export type QueueAnswer =
  | {
      readonly outcome: 'waiting';
      readonly ticket: string;
      readonly priority: (typeof CLASSES)[number];
      /** From 1; null before a draw. */
      readonly position: number | null;
      /** Until it is his turn, at the present rate; null when nobody can say. */
      readonly estimateMs: number | null;
      readonly pollMs: number;
    }
  | { readonly outcome: 'admitted'; readonly pass: string; /** Unix ms. */ readonly untilMs: number }
  | { readonly outcome: 'no_queue' | 'sold_out' | 'overloaded' | 'ticket_not_found' };

/** Time enough for a person, and the door opens ten times a second. */
export const TICK_MS = 100;

/**
 * The waiting rooms of one process. Everything a place consists of is in its ticket, under our seal: a process that
 * does not know the buyer, because it was started anew or stands beside, takes him in where he belongs.
 */
export class WaitingRooms {
  readonly #parts: WaitingRoomsParts;
  readonly #wheel: TimingWheel;
  readonly #rooms = new Map<string, Room>();

  constructor(parts: WaitingRoomsParts) {
    this.#parts = parts;
    this.#wheel = new TimingWheel(TICK_MS, parts.clock.nowMs());
  }

  /** Buyers who wait, in all rooms. */
  get waiting(): number {
    return [...this.#rooms.values()].reduce((sum, room) => sum + room.waiting, 0);
  }

  /** A place for a buyer; the one he has, if he has one. */
  join({ saleId, opensAtMs }: QueueSale, { userId, roles }: QueueBuyer): QueueAnswer {
    const closed = this.#closed(saleId);
    if (closed !== null) return closed;
    const nowMs = this.#parts.clock.nowMs();
    const waiter = this.#rooms.get(saleId)?.find(userId);
    if (waiter !== undefined && waiter.state !== 'over') return this.#answer(saleId, waiter, nowMs);
    return this.#takeIn({ saleId, opensAtMs }, userId, classOf(roles), nowMs);
  }

  /** How the place of a ticket stands. */
  look({ saleId, opensAtMs }: QueueSale, { userId }: Pick<QueueBuyer, 'userId'>, ticket: string): QueueAnswer {
    const closed = this.#closed(saleId);
    if (closed !== null) return closed;
    const place = this.#read(ticket, { kind: 'queue-ticket', saleId, userId });
    if (place === null) return { outcome: 'ticket_not_found' };
    const nowMs = this.#parts.clock.nowMs();
    const waiter = this.#rooms.get(saleId)?.find(userId);
    if (waiter === undefined) return this.#takeIn({ saleId, opensAtMs }, userId, place.priority, place.joinedMs);
    return waiter.state === 'over' ? { outcome: 'ticket_not_found' } : this.#answer(saleId, waiter, nowMs);
  }

  /** Nothing is left: the queue of a sale is over at once. */
  end(saleId: string): void {
    this.#rooms.get(saleId)?.end();
    this.#rooms.delete(saleId);
  }

  /** One turn of the loop: lets in who may go in, ends what is over, and closes rooms that are empty. */
  runOnce(): void {
    this.#wheel.advance(this.#parts.clock.nowMs());
    for (const [saleId, room] of this.#rooms) {
      if (room.size === 0 || this.#parts.isSoldOut(saleId)) this.end(saleId);
    }
  }

  /** Why there is nothing to wait for; null where there is. */
  #closed(saleId: string): QueueAnswer | null {
    const { mode, sales } = this.#parts.rules();
    if (mode === 'off' || !covers(sales, saleId)) return { outcome: 'no_queue' };
    if (this.#parts.isSoldOut(saleId)) {
      this.end(saleId);
      return { outcome: 'sold_out' };
    }
    this.#wheel.advance(this.#parts.clock.nowMs());
    return null;
  }

  #takeIn(sale: QueueSale, userId: string, priority: PriorityClass, joinedMs: number): QueueAnswer {
    const { rules, clock } = this.#parts;
    const tickets = [...this.#rooms.values()].reduce((sum, { size }) => sum + size, 0);
    if (tickets >= rules().ticketsMax) return { outcome: 'overloaded' };
    const room = this.#rooms.get(sale.saleId) ?? this.#newRoom(sale);
    const nowMs = clock.nowMs();
    return this.#answer(sale.saleId, room.join(userId, priority, joinedMs, nowMs), nowMs);
  }

  #newRoom({ saleId, opensAtMs }: QueueSale): Room {
    const { rules, pick } = this.#parts;
    const room = new Room(opensAtMs, { rules, pick, wheel: this.#wheel });
    this.#rooms.set(saleId, room);
    return room;
  }

  #answer(saleId: string, waiter: Waiter, nowMs: number): QueueAnswer {
    const { rules, seals } = this.#parts;
    const { userId, priority, joinedMs, untilMs } = waiter;
    waiter.seenMs = nowMs;
    if (waiter.state === 'admitted') {
      const pass = seals.seal({ kind: 'queue-pass', saleId, userId }, [untilMs]);
      return { outcome: 'admitted', pass, untilMs };
    }
    const room = this.#rooms.get(saleId) as Room;
    const { idleMs, pollMs } = rules();
    const position = room.position(waiter);
    const ticket = seals.seal({ kind: 'queue-ticket', saleId, userId }, [priority, joinedMs, nowMs + idleMs]);
    const estimateMs = room.estimateMs(position, nowMs);
    return { outcome: 'waiting', ticket, priority: CLASSES[priority], position, estimateMs, pollMs };
  }

  #read(ticket: string, of: SealOf): { readonly priority: PriorityClass; readonly joinedMs: number } | null {
    const [first, joinedMs, untilMs] = this.#parts.seals.open(of, ticket) ?? [];
    const priority = readClass(first);
    if (priority === null || Number(untilMs) <= this.#parts.clock.nowMs()) return null;
    return { priority, joinedMs: Number(joinedMs) };
  }
}

export interface QueuePassesParts {
  readonly rules: () => QueueRules;
  readonly seals: Seals;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly metrics: Pick<AdmissionMetrics, 'refused'>;
}

/** The guard at the purchase: who has no pass of the waiting room goes there first. Asks nobody, stores nothing. */
export class QueuePasses {
  readonly #parts: QueuePassesParts;

  constructor(parts: QueuePassesParts) {
    this.#parts = parts;
  }

  /** @param pass the header `Seckill-Queue-Pass` @returns null: let him in */
  check(saleId: string, userId: string, pass: string | string[] | undefined): 'forbidden' | null {
    const { mode, sales } = this.#parts.rules();
    if (mode === 'off' || !covers(sales, saleId)) return null;
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
