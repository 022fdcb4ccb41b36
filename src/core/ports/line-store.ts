/** A number per priority class, P0 first. */
export type PerClass = readonly [number, number, number];

/** The line of a waiting room. Numbers are given out per class, from 1. */
export interface Line {
  /** Rises when an operator empties the room. A ticket of a smaller epoch has ended. */
  readonly epoch: number;
  /** Whether the order of the buyers who came before the opening is drawn by lot. */
  readonly byLot: boolean;
  /** Whether the sale has opened. Never returns to false. */
  readonly opened: boolean;
  /** The last numbers given out. */
  readonly joined: PerClass;
  /** The last numbers whose turn has come. */
  readonly admitted: PerClass;
  /** Buyers whom an operator let in besides the rate. */
  readonly granted: number;
}

/** How a line moves, from the sale and the rules. */
export interface LineTerms {
  readonly saleId: string;
  readonly opensAtMs: number;
  /** Order of a new line. */
  readonly byLot: boolean;
  /** Buyers admitted per second, by all processes together. */
  readonly perSecond: number;
  /** A turn that is not used for one to two times this period has passed. */
  readonly turnMs: number;
}

/** The place in a ticket. */
export interface TicketPlace {
  readonly epoch: number;
  /** 0 before the draw. */
  readonly number: number;
  /** The last number of the class that was admitted when the ticket was issued. */
  readonly admitted: number;
}

/** A buyer who wants a place. */
export interface PlaceAsk {
  readonly userId: string;
  /** 0 to 2. A buyer who has a place keeps its class. */
  readonly priority: number;
  /** 0 to below 1. */
  readonly lot: number;
  /** Null: the buyer shows no ticket. */
  readonly ticket: TicketPlace | null;
  readonly waitingMax: number;
  readonly passMs: number;
}

/**
 * - `ended`: the pass of the ticket is over, its turn has passed unused, or an operator emptied the room
 * - `overloaded`: `waitingMax` buyers wait
 * - `admitted`: the buyer has a pass until `untilMs`
 * - `waiting`
 */
export type PlaceWord = 'ended' | 'overloaded' | 'admitted' | 'waiting';

export interface TakenPlace {
  readonly word: PlaceWord;
  readonly priority: number;
  /** 0 before the draw. */
  readonly number: number;
  /** Unix ms on the clock of the store. 0 without a pass. */
  readonly untilMs: number;
  readonly line: Line;
}

/** `no_room`: no buyer has joined, or the room has ended. */
export type SteerWord = 'no_room' | 'emptied' | 'not_open' | 'admitted';

/**
 * The lines of all waiting rooms, for all processes together. `known` is the line that the caller saw last: it restores
 * what a fail-over of the store lost.
 */
export interface LineStore {
  /**
   * Admits the buyers whose turn has come, by the clock of the store, and returns the line.
   * @throws OperationalError redis
   * Source: lua/read-line-3.lua
   */
  read(terms: LineTerms, known: Line | null): Promise<Line>;

  /**
   * Gives a buyer a place, finds the place again, or turns it into a pass. Safe to repeat.
   * @throws OperationalError redis; the buyer may have the place all the same
   * Source: lua/take-place-3.lua
   */
  take(terms: LineTerms, known: Line | null, ask: PlaceAsk): Promise<TakenPlace>;

  /**
   * Returns the line as a process moved it last. Null: no buyer has joined, or the room has ended.
   * @throws OperationalError redis
   */
  look(saleId: string): Promise<Line | null>;

  /**
   * Admits a number of buyers besides the rate, or ends all places.
   * @param admit `all_out` empties the room
   * @throws OperationalError redis; the line may have moved all the same
   * Source: lua/steer-line-3.lua
   */
  steer(saleId: string, admit: number | 'all_out'): Promise<{ readonly word: SteerWord; readonly buyers: number }>;
}
