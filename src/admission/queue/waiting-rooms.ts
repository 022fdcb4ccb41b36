import type { Clock } from '../../core/ports/clock.js';
import type { Seals, SealOf } from '../sign/seals.js';
import { modeFor } from '../layer.js';
import { CLASSES, classOf, readClass, type PriorityClass, type QueueRules } from './queue-rules.js';
import { Room, type Waiter } from './room.js';
import type { AdmissionMetrics } from '../metrics.js';

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
 * - `no_queue`: no buyer waits for this sale; buy
 * - `waiting`: ask again after `pollMs` and show the ticket, which is a new one each time
 * - `admitted`: buy with this pass, until it ends
 * - `overloaded`: too many wait in this process
 */
export type QueueAnswer =
  | {
      readonly outcome: 'waiting';
      readonly ticket: string;
      readonly priority: (typeof CLASSES)[number];
      /** From 1; null before a sale by lot opens. */
      readonly position: number | null;
      /** Until the buyer's turn, at the present rate; null when unknown. */
      readonly estimateMs: number | null;
      readonly pollMs: number;
    }
  | { readonly outcome: 'admitted'; readonly pass: string; /** Unix ms. */ readonly untilMs: number }
  | { readonly outcome: 'no_queue' | 'sold_out' | 'overloaded' };

/** `ticket_not_found`: not a ticket of this buyer and sale, or it has ended; join again. */
export type TicketAnswer = QueueAnswer | { readonly outcome: 'ticket_not_found' };

/** Exact enough for people; rooms admit ten times a second. */
export const TICK_MS = 100;

/**
 * The waiting rooms of one process. A ticket holds, under our seal, all that a place consists of: a process that does
 * not know the buyer, because it has started anew or is another one, puts them where they belong.
 */
export class WaitingRooms {
  readonly #rules: () => QueueRules;
  readonly #seals: Seals;
  readonly #isSoldOut: (saleId: string) => boolean;
  readonly #clock: Clock;
  readonly #rooms = new Map<string, Room>();
  #tick = -1;

  /**
   * @param isSoldOut whether this process knows that nothing is left; called for each ticket
   */
  constructor({
    rules,
    seals,
    isSoldOut,
    clock,
  }: {
    readonly rules: () => QueueRules;
    readonly seals: Seals;
    readonly isSoldOut: (saleId: string) => boolean;
    readonly clock: Clock;
  }) {
    this.#rules = rules;
    this.#seals = seals;
    this.#isSoldOut = isSoldOut;
    this.#clock = clock;
  }

  /** Buyers who wait, in all rooms. */
  get waiting(): number {
    return [...this.#rooms.values()].reduce((sum, room) => sum + room.waiting, 0);
  }

  /** The same by sale, of those that have a room. */
  get waitingBySale(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#rooms].map(([saleId, room]) => [saleId, room.waiting]));
  }

  /** Whether buyers of this sale should join first: in a dry run too, so that it can be tried. */
  isFor(saleId: string): boolean {
    return modeFor(this.#rules(), saleId) !== 'off';
  }

  /** A place for a buyer: the one they have, or a new one at the end. */
  join({ saleId, opensAtMs }: QueueSale, { userId, roles }: QueueBuyer): QueueAnswer {
    const closed = this.#closed(saleId);
    if (closed !== null) return closed;
    const nowMs = this.#clock.nowMs();
    const waiter = this.#rooms.get(saleId)?.find(userId, nowMs);
    if (waiter !== undefined && waiter.state !== 'over') return this.#answer(saleId, waiter, nowMs);
    return this.#takeIn({ saleId, opensAtMs }, userId, classOf(roles), nowMs);
  }

  /** The state of the place that a ticket is for. */
  read({ saleId, opensAtMs }: QueueSale, { userId }: Pick<QueueBuyer, 'userId'>, ticket: string): TicketAnswer {
    const closed = this.#closed(saleId);
    if (closed !== null) return closed;
    const place = this.#openTicket(ticket, { kind: 'queue-ticket', saleId, userId });
    if (place === null) return { outcome: 'ticket_not_found' };
    const nowMs = this.#clock.nowMs();
    const waiter = this.#rooms.get(saleId)?.find(userId, nowMs);
    if (waiter === undefined) return this.#takeIn({ saleId, opensAtMs }, userId, place.priority, place.joinedMs);
    return waiter.state === 'over' ? { outcome: 'ticket_not_found' } : this.#answer(saleId, waiter, nowMs);
  }

  /** Nothing is left: the queue of a sale ends at once. */
  end(saleId: string): void {
    this.#rooms.delete(saleId);
  }

  /** One tick: admits those whose turn has come, ends what is over, and closes rooms that are empty. */
  runOnce(): void {
    this.#advance();
    for (const [saleId, room] of this.#rooms) {
      if (room.size === 0 || this.#isSoldOut(saleId)) this.end(saleId);
    }
  }

  /** Why there is nothing to wait for; null where there is. */
  #closed(saleId: string): QueueAnswer | null {
    if (modeFor(this.#rules(), saleId) === 'off') return { outcome: 'no_queue' };
    if (this.#isSoldOut(saleId)) {
      this.end(saleId);
      return { outcome: 'sold_out' };
    }
    this.#advance();
    return null;
  }

  /** Once per tick, by the loop or a buyer's call, whichever comes first. */
  #advance(): void {
    const tick = Math.floor(this.#clock.monotonicMs() / TICK_MS);
    if (tick === this.#tick) return;
    this.#tick = tick;
    const nowMs = this.#clock.nowMs();
    for (const room of this.#rooms.values()) room.advance(nowMs);
  }

  #takeIn(sale: QueueSale, userId: string, priority: PriorityClass, joinedMs: number): QueueAnswer {
    const tickets = [...this.#rooms.values()].reduce((sum, { size }) => sum + size, 0);
    if (tickets >= this.#rules().ticketsMax) return { outcome: 'overloaded' };
    let room = this.#rooms.get(sale.saleId);
    if (room === undefined) {
      room = new Room(sale.opensAtMs, this.#rules, (buyer) => this.#seals.lot(sale.saleId, buyer), this.#clock);
      this.#rooms.set(sale.saleId, room);
    }
    const nowMs = this.#clock.nowMs();
    return this.#answer(sale.saleId, room.join(userId, priority, joinedMs, nowMs), nowMs);
  }

  #answer(saleId: string, waiter: Waiter, nowMs: number): QueueAnswer {
    const { userId, priority, joinedMs, untilMs } = waiter;
    if (waiter.state === 'admitted') {
      const pass = this.#seals.seal({ kind: 'queue-pass', saleId, userId }, [untilMs]);
      return { outcome: 'admitted', pass, untilMs };
    }
    const room = this.#rooms.get(saleId) as Room;
    room.touch(waiter);
    const { idleMs, pollMs } = this.#rules();
    const position = room.position(waiter);
    const ticket = this.#seals.seal({ kind: 'queue-ticket', saleId, userId }, [priority, joinedMs, nowMs + idleMs]);
    const estimateMs = room.estimateMs(position, nowMs);
    return { outcome: 'waiting', ticket, priority: CLASSES[priority], position, estimateMs, pollMs };
  }

  #openTicket(ticket: string, of: SealOf): { readonly priority: PriorityClass; readonly joinedMs: number } | null {
    const [first, joinedMs, untilMs] = this.#seals.open(of, ticket) ?? [];
    const priority = readClass(first);
    if (priority === null || Number(untilMs) <= this.#clock.nowMs()) return null;
    return { priority, joinedMs: Number(joinedMs) };
  }
}

interface QueuePassesParts {
  readonly rules: () => QueueRules;
  readonly seals: Seals;
  readonly clock: Clock;
  readonly metrics: AdmissionMetrics;
}

/** Checks the pass of a purchase: a buyer without one goes to the waiting room first. Calls no server, stores nothing. */
export class QueuePasses {
  readonly #parts: QueuePassesParts;

  constructor(parts: QueuePassesParts) {
    this.#parts = parts;
  }

  /** @param pass the header `Seckill-Queue-Pass` @returns null: go on */
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
