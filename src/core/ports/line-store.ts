/** A number per priority class, P0 first. */
export type PerClass = readonly [number, number, number];

/** The line of a waiting room. Each class numbers its places from 1. */
export interface Line {
  /** Rises when an operator empties the room. Tickets of a lower epoch are void. */
  readonly epoch: number;
  /** Whether a draw decides the order of the buyers who came before the opening. */
  readonly byLot: boolean;
  /** Whether the sale has opened. Never becomes false again. */
  readonly opened: boolean;
  /** The last number given out, per class. */
  readonly joined: PerClass;
  /** The last number whose turn has come, per class. */
  readonly admitted: PerClass;
  /** Number of buyers that an operator admitted in addition to the rate. */
  readonly granted: number;
}

/** How a line moves, by sale and rules. */
export interface LineTerms {
  readonly saleId: string;
  readonly opensAtMs: number;
  /** The value of `byLot` for a new line. */
  readonly byLot: boolean;
  /** Buyers admitted, by all processes together. */
  readonly perSecond: number;
  /** A turn passes if unused within once to twice this period. */
  readonly turnMs: number;
}

/** A place as a ticket states it. */
export interface TicketPlace {
  readonly epoch: number;
  /** The number of the place. 0 before the draw. */
  readonly number: number;
  /** The last number of the class that was admitted when the ticket was issued. */
  readonly admitted: number;
}

/** A request of a buyer for a place. */
export interface PlaceAsk {
  readonly userId: string;
  /** 0 to 2. A buyer who already has a place keeps its class. */
  readonly priority: number;
  /** Random number for the draw, from 0 to below 1. */
  readonly lot: number;
  /** Null if the buyer has no ticket. */
  readonly ticket: TicketPlace | null;
  readonly waitingMax: number;
  readonly passMs: number;
}

/**
 * - `ended`: the pass is over, the turn has passed unused, or an operator emptied the room
 * - `overloaded`: `waitingMax` buyers are waiting
 * - `admitted`: the buyer has a pass until `untilMs`
 * - `waiting`
 */
export type PlaceWord = 'ended' | 'overloaded' | 'admitted' | 'waiting';

export interface TakenPlace {
  readonly word: PlaceWord;
  readonly priority: number;
  /** The number of the place. 0 before the draw. */
  readonly number: number;
  /** End of the pass, Unix ms on the clock of the store. 0 without a pass. */
  readonly untilMs: number;
  readonly line: Line;
}

/** `no_room` means that no buyer has joined, or that the room has ended. */
export type SteerWord = 'no_room' | 'emptied' | 'not_open' | 'admitted';

/**
 * All waiting rooms, shared by all processes. `known`, the line that the caller saw last, restores what a fail-over
 * lost. Methods throw OperationalError redis.
 */
export interface LineStore {
  /** Admits the buyers whose turn has come, by the clock of the store. Source: lua/read-line-3.lua */
  read(terms: LineTerms, known: Line | null): Promise<Line>;

  /** Gives a buyer a place, finds it again, or turns it into a pass. Safe to repeat. Source: lua/take-place-3.lua */
  take(terms: LineTerms, known: Line | null, ask: PlaceAsk): Promise<TakenPlace>;

  /** Returns the line as last stored, without moving it. Null if no buyer has joined, or the room has ended. */
  look(saleId: string): Promise<Line | null>;

  /**
   * Admits buyers in addition to the rate. After an error, the line may have moved. Source: lua/steer-line-3.lua
   * @param admit `all_out` ends all places
   */
  steer(saleId: string, admit: number | 'all_out'): Promise<{ readonly word: SteerWord; readonly buyers: number }>;
}
