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
  /** The roles in the token, which determine the class. */
  readonly roles: readonly string[];
}

/**
 * - `no_queue`: no buyer waits for this sale; buy
 * - `waiting`: ask again after `pollMs` and show the ticket, which is new each time
 * - `admitted`: buy with this pass, until it ends
 * - `overloaded`: too many buyers wait in this process
 */
export type QueueAnswer =
  | {
      readonly outcome: 'waiting';
      readonly ticket: string;
      readonly priority: (typeof CLASSES)[number];
      /** The place, from 1. Null before a sale by lot opens. */
      readonly position: number | null;
      /** Time until the buyer's turn, at the present rate, ms. Null if unknown. */
      readonly estimateMs: number | null;
      readonly pollMs: number;
    }
  | { readonly outcome: 'admitted'; readonly pass: string; /** Unix ms. */ readonly untilMs: number }
  | { readonly outcome: 'no_queue' | 'sold_out' | 'overloaded' };

/** `ticket_not_found`: not a ticket of this buyer and sale, or it has ended. Join again. */
export type TicketAnswer = QueueAnswer | { readonly outcome: 'ticket_not_found' };

/** Interval at which rooms admit buyers, exact enough for people. */
export const TICK_MS = 100;

/**
 * The waiting rooms of a process. A ticket holds, under our seal, all properties of a place: a process that does not
 * know the buyer, because it has restarted or is another process, puts the buyer in the right place.
 */
export class WaitingRooms {
  readonly #rules: () => QueueRules;
  readonly #seals: Seals;
  readonly #isSoldOut: (saleId: string) => boolean;
  readonly #clock: Clock;
  readonly #rooms = new Map<string, Room>();
  #tick = -1;

  /** @param isSoldOut whether this process knows that nothing is left; called for each ticket */
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

  /** Number of waiting buyers, in all rooms. */
  get waiting(): number {
    return [...this.#rooms.values()].reduce((sum, room) => sum + room.waiting, 0);
  }

  /** Number of waiting buyers by sale, for sales with a room. */
  get waitingBySale(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#rooms].map(([saleId, room]) => [saleId, room.waiting]));
  }

  /** Whether buyers of this sale should join first. True also in a dry run, so that the queue can be tested. */
  isFor(saleId: string): boolean {
    return modeFor(this.#rules(), saleId) !== 'off';
  }

  /** Returns the buyer's place, or gives the buyer a new place at the end. */
  join({ saleId, opensAtMs }: QueueSale, { userId, roles }: QueueBuyer): QueueAnswer {
    const closed = this.#closed(saleId);
    if (closed !== null) return closed;
    const nowMs = this.#clock.nowMs();
    const waiter = this.#rooms.get(saleId)?.find(userId, nowMs);
    if (waiter !== undefined && waiter.state !== 'over') return this.#answer(saleId, waiter, nowMs);
    return this.#takeIn({ saleId, opensAtMs }, userId, classOf(roles), nowMs);
  }

  /** Returns the state of the place that a ticket is for. */
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

  /** Ends the queue of a sale that has nothing left. */
  end(saleId: string): void {
    this.#rooms.delete(saleId);
  }

  /** Runs one tick: ends places and passes, admits the next buyers, and closes empty rooms. */
  runOnce(): void {
    this.#advance();
    for (const [saleId, room] of this.#rooms) {
      if (room.size === 0 || this.#isSoldOut(saleId)) this.end(saleId);
    }
  }

  /** Returns why there is nothing to wait for. Null if buyers should wait. */
  #closed(saleId: string): QueueAnswer | null {
    if (modeFor(this.#rules(), saleId) === 'off') return { outcome: 'no_queue' };
    if (this.#isSoldOut(saleId)) {
      this.end(saleId);
      return { outcome: 'sold_out' };
    }
    this.#advance();
    return null;
  }

  /** Advances the rooms once per tick, called by the loop or a buyer's call, whichever comes first. */
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

/**
 * Checks the pass of a purchase: a buyer without a pass goes to the waiting room first. Calls no server, stores
 * nothing.
 */
export class QueuePasses {
  readonly #parts: QueuePassesParts;

  constructor(parts: QueuePassesParts) {
    this.#parts = parts;
  }

  /**
   * @param pass the header `Seckill-Queue-Pass`
   * @returns null: proceed
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
