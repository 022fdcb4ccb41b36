import { OperationalError } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type {
  Line,
  LineStore,
  LineTerms,
  PlaceAsk,
  SteerWord,
  TakenPlace,
} from '../../../src/core/ports/line-store.js';

type Figures = [number, number, number];

interface Place {
  priority: number;
  number: number;
  untilMs: number;
}

/** Replaces the end of a pass, so that an old ticket no longer counts. */
const WAITS_AGAIN = 1;

/** The line of a room, with the fields that Redis keeps in the text of the line. */
class Room {
  opened = false;
  joined: Figures = [0, 0, 0];
  admitted: Figures = [0, 0, 0];
  previous: Figures = [0, 0, 0];
  gone: Figures = [0, 0, 0];
  granted = 0;
  credit = 0;
  atMs = 0;
  period = 0;
  readonly places = new Map<string, Place>();
  readonly lots = new Map<string, { priority: number; lot: number }>();

  readonly epoch: number;
  readonly byLot: boolean;

  constructor(epoch: number, byLot: boolean) {
    this.epoch = epoch;
    this.byLot = byLot;
  }

  get waiting(): number {
    return this.joined.reduce((sum, joined, priority) => sum + joined - (this.admitted[priority] as number), 0);
  }

  letIn(places: number): number {
    let left = places;
    for (const priority of [0, 1, 2] as const) {
      const next = Math.min(left, this.joined[priority] - this.admitted[priority]);
      this.admitted[priority] += next;
      left -= next;
    }
    return places - left;
  }

  advance({ perSecond, turnMs }: LineTerms, nowMs: number): void {
    if (!this.opened) return;
    const period = Math.floor(nowMs / turnMs);
    if (period !== this.period) {
      this.gone = this.previous;
      this.previous = [...this.admitted];
      this.period = period;
    }
    const earned = (perSecond * Math.max(0, nowMs - this.atMs)) / 1000;
    this.credit = Math.min(perSecond > 0 ? 1 + perSecond : 0, this.credit + earned);
    this.atMs = nowMs;
    this.credit -= this.letIn(Math.floor(this.credit + 1e-9));
  }

  shown(): Line {
    const { epoch, byLot, opened, joined, admitted, previous, gone, granted } = this;
    return structuredClone({ epoch, byLot, opened, joined, admitted, previous, gone, granted }) as Line;
  }
}

/** Waiting rooms in memory, on one clock. Rooms never end by themselves. */
export class MemoryLineStore implements LineStore {
  readonly #clock: Clock;
  readonly #rooms = new Map<string, Room>();
  /** While true, every call fails as if Redis were down. */
  down = false;
  asked = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Loses everything, like a server that restarts without its data. */
  lose(): void {
    this.#rooms.clear();
  }

  async read(terms: LineTerms, known: Line | null): Promise<Line> {
    this.#call();
    const room = this.#open(terms, known);
    room.advance(terms, this.#clock.nowMs());
    return room.shown();
  }

  async take(terms: LineTerms, known: Line | null, ask: PlaceAsk): Promise<TakenPlace> {
    this.#call();
    const nowMs = this.#clock.nowMs();
    let room = this.#open(terms, known);
    const { ticket } = ask;
    if (ticket !== null && ticket.epoch > room.epoch) {
      this.#rooms.set(terms.saleId, new Room(ticket.epoch, room.byLot));
      room = this.#open(terms, null);
    }
    const answer = (word: TakenPlace['word'], place: Place): TakenPlace => ({ word, ...place, line: room.shown() });
    const stored = room.places.get(ask.userId);
    const shown: Place = { priority: ask.priority, number: ticket?.number ?? 0, untilMs: 0 };
    if (stored === undefined && ticket !== null && ticket.epoch < room.epoch) return answer('ended', shown);
    const ticketFits =
      stored?.untilMs === 0 && ticket?.epoch === room.epoch && ticket.number > 0 && ask.priority === stored.priority;
    let place = stored === undefined || (ticketFits && ticket.number < stored.number) ? shown : stored;
    if (place.untilMs > nowMs) return answer('admitted', place);
    const isOver =
      place.untilMs > WAITS_AGAIN || (place.number > 0 && place.number <= figure(room.gone, place.priority));
    if (isOver && ticket !== null) return answer('ended', place);
    if (isOver) place = { ...place, number: 0, untilMs: place.untilMs > 0 ? WAITS_AGAIN : 0 };

    if (place.number === 0) {
      const drawn = isOver || !room.byLot ? undefined : room.lots.get(ask.userId);
      place = { ...place, priority: drawn?.priority ?? place.priority };
      if (drawn === undefined && room.waiting >= ask.waitingMax) return answer('overloaded', place);
      const ofClass = () => [...room.lots].filter(([, { priority }]) => priority === place.priority);
      if (room.byLot && !room.opened) {
        if (drawn === undefined) room.lots.set(ask.userId, { priority: place.priority, lot: ask.lot });
        raise(room.joined, place.priority, ofClass().length);
        return answer('waiting', place);
      }
      const ahead = ofClass().filter(([, { lot }]) => drawn !== undefined && lot < drawn.lot).length;
      place.number = drawn === undefined ? figure(room.joined, place.priority) + 1 : ahead + 1;
    }
    raise(room.admitted, place.priority, ticket?.admitted ?? 0);
    raise(room.joined, place.priority, Math.max(place.number, figure(room.admitted, place.priority)));
    room.advance(terms, nowMs);
    const isAdmitted = place.number <= figure(room.admitted, place.priority);
    if (isAdmitted) place = { ...place, untilMs: nowMs + ask.passMs };
    room.places.set(ask.userId, place);
    return answer(isAdmitted ? 'admitted' : 'waiting', place);
  }

  async look(saleId: string): Promise<Line | null> {
    this.#call();
    return this.#rooms.get(saleId)?.shown() ?? null;
  }

  async steer(saleId: string, admit: number | 'all_out'): Promise<{ word: SteerWord; buyers: number }> {
    this.#call();
    const room = this.#rooms.get(saleId);
    if (room === undefined) return { word: 'no_room', buyers: 0 };
    if (admit === 'all_out') {
      const empty = new Room(room.epoch + 1, room.byLot);
      Object.assign(empty, { opened: room.opened, atMs: room.atMs });
      this.#rooms.set(saleId, empty);
      return { word: 'emptied', buyers: room.waiting };
    }
    if (!room.opened) return { word: 'not_open', buyers: 0 };
    const buyers = room.letIn(admit);
    room.granted += buyers;
    return { word: 'admitted', buyers };
  }

  /** Opens the room, and restores lost numbers from `known`. */
  #open({ saleId, byLot, opensAtMs }: LineTerms, known: Line | null): Room {
    let room = this.#rooms.get(saleId) ?? new Room(known?.epoch ?? 1, known?.byLot ?? byLot);
    if (known !== null && known.epoch > room.epoch) room = new Room(known.epoch, known.byLot);
    this.#rooms.set(saleId, room);
    if (known?.epoch === room.epoch) {
      for (const name of ['joined', 'admitted', 'previous', 'gone'] as const) {
        const figures = (known as unknown as Room)[name];
        for (const priority of [0, 1, 2]) raise(room[name], priority, figure(figures, priority));
      }
      room.granted = Math.max(room.granted, known.granted);
      if (known.opened && !room.opened) Object.assign(room, { opened: true, atMs: this.#clock.nowMs() });
    }
    if (!room.opened && this.#clock.nowMs() >= opensAtMs) {
      room.opened = true;
      room.atMs = opensAtMs;
    }
    return room;
  }

  #call(): void {
    this.asked++;
    if (this.down) throw new OperationalError('redis', 'memory line store is down', { retryable: true });
  }
}

const figure = (figures: Figures, priority: number): number => figures[priority] as number;

function raise(figures: Figures, priority: number, to: number): void {
  figures[priority] = Math.max(figure(figures, priority), to);
}
