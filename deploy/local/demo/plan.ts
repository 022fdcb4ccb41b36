// What the simulated buyers of `npm start -- --traffic` do. Only numbers and words: nothing here has a clock or a connection.

/** A kind of sale. One of each is always announced or open; the next one is made when it is over. */
export interface SaleKind {
  readonly title: string;
  readonly priceCents: number;
  readonly stock: number;
  readonly limitPerBuyer: number;
  readonly buckets: number;
  /** How long it can be seen before it opens. */
  readonly announcedMs: number;
  readonly openForMs: number;
  /** From its end to the opening of the next one. */
  readonly pauseMs: number;
  /** Buyers who come in a second, so long after the opening; before it, this is negative. */
  readonly buyersPerSecond: (sinceOpeningMs: number) => number;
}

/** How long the buyers of the hot sale press the button at once. */
const RUSH_MS = 3_000;
/** From one high tide of the steady sale to the next. */
const TIDE_MS = 60_000;
/** Buyers of the waiting room come in a group, and the next group when most have been let in. */
const GROUP_EVERY_MS = 90_000;
const GROUP_COMES_FOR_MS = 15_000;

export const SALE_KINDS = {
  hot: {
    title: 'Demo: hot, sold out in seconds',
    priceCents: 4_900,
    stock: 150,
    limitPerBuyer: 1,
    buckets: 1,
    announcedMs: 15_000,
    openForMs: 40_000,
    pauseMs: 20_000,
    buyersPerSecond: (ms) => (ms < -2_000 ? 0 : ms < 0 ? 8 : ms < RUSH_MS ? 100 : 3),
  },
  steady: {
    title: 'Demo: steady, buyers come in waves',
    priceCents: 1_500,
    stock: 5_000,
    limitPerBuyer: 3,
    buckets: 2,
    announcedMs: 5_000,
    openForMs: 900_000,
    pauseMs: 5_000,
    buyersPerSecond: (ms) => (ms < 0 ? 0 : 4 - 3 * Math.cos((2 * Math.PI * ms) / TIDE_MS)),
  },
  scarce: {
    title: 'Demo: scarce, units that come back are sold again',
    priceCents: 29_900,
    stock: 6,
    limitPerBuyer: 2,
    buckets: 1,
    announcedMs: 5_000,
    openForMs: 300_000,
    pauseMs: 10_000,
    buyersPerSecond: (ms) => (ms < 0 ? 0 : 0.7),
  },
  queued: {
    title: 'Demo: with a waiting room',
    priceCents: 9_900,
    stock: 400,
    limitPerBuyer: 1,
    buckets: 1,
    announcedMs: 5_000,
    openForMs: 600_000,
    pauseMs: 10_000,
    buyersPerSecond: (ms) => (ms < 0 ? 0 : ms % GROUP_EVERY_MS < GROUP_COMES_FOR_MS ? 3 : 0.1),
  },
} as const satisfies Record<string, SaleKind>;

export type SaleName = keyof typeof SALE_KINDS;

/** Of its waiting room. */
export const ADMITTED_PER_SECOND = 1;

/** What a buyer does, and how many of a hundred do it. */
const HABITS = {
  /** Takes some seconds to pay. */
  pays: 40,
  /** The first payment is declined; half of them pay with another card, half give up. */
  is_declined: 9,
  cancels: 12,
  /** The order expires. */
  never_pays: 10,
  /** The order has expired when the money comes: it is owed back. */
  pays_too_late: 3,
  /** Clicks twice, and loads the page again. */
  repeats: 10,
  /** Sends one key again with another quantity. */
  changes_quantity: 3,
  /** Wants more units than one buyer may have. */
  is_greedy: 5,
  /** Sends no token. */
  has_no_token: 4,
  /** Passes by the waiting room, if there is one. Else buys and pays. */
  jumps_the_queue: 4,
} as const;

export type Habit = keyof typeof HABITS;

const HABIT_NAMES = Object.keys(HABITS) as Habit[];
/** Shares no divisor with 100, so a hundred buyers in a row have every habit as often as its share says. */
const HABIT_STRIDE = 61;

/**
 * Returns what the nth buyer of a kind of sale does. Habits are dealt, not drawn, so every habit comes early.
 * @param nth from 0
 */
export function habitOf(nth: number): Habit {
  let left = (nth * HABIT_STRIDE) % 100;
  return HABIT_NAMES.find((habit) => (left -= HABITS[habit]) < 0) ?? 'pays';
}

/** When the next sale of a kind opens, and from when on it is announced, Unix ms. @param lastClosedAtMs null: it is the first */
export function nextSale(
  { announcedMs, pauseMs }: SaleKind,
  nowMs: number,
  lastClosedAtMs: number | null,
): { readonly announcedAtMs: number; readonly opensAtMs: number } {
  // a machine that slept makes the next one late: it is announced from now on
  const opensAtMs = Math.max(nowMs + announcedMs, lastClosedAtMs === null ? 0 : lastClosedAtMs + pauseMs);
  return { announcedAtMs: opensAtMs - announcedMs, opensAtMs };
}

/** A pause of the programs, or of this one, must not become a crowd. */
const STEP_MAX_MS = 1_000;

/** Counts whole buyers out of a rate. */
export class Arrivals {
  #due = 0;

  /** @returns how many come in a step of this time */
  after(stepMs: number, perSecond: number): number {
    this.#due += (Math.min(stepMs, STEP_MAX_MS) / 1000) * perSecond;
    const come = Math.floor(this.#due);
    this.#due -= come;
    return come;
  }
}

/** When each fault happens first, and how often from then on, ms. */
export const FAULT_TIMES = {
  poisoned_batch: { firstMs: 3_000, everyMs: 150_000 },
  half_message: { firstMs: 12_000, everyMs: 120_000 },
  killed_worker: { firstMs: 35_000, everyMs: 60_000 },
} as const;

export type Fault = keyof typeof FAULT_TIMES;

/** The programs of a system with traffic; what the environment says comes before it. */
export const TRAFFIC_ENV = {
  ORDER_PAYMENT_WINDOW_MS: '45000', // orders expire before somebody's eyes
  HOT_SALE_PER_SECOND: '20',
  // Redis forgets a sale minutes after its end, so that hours of traffic need no more of it than minutes
  RETIRE_AFTER_MS: '600000',
  MARKER_LIFE_MS: '900000',
  RECONCILE_EVERY_MS: '30000',
  RECONCILE_KEEP_MS: '3600000',
  OUTBOX_KEEP_MS: '600000',
} as const;

/** With faults too. */
export const FAULTS_ENV = {
  LOG_LEVEL: 'error', // a line says what is broken; what programs warn of it would hide that line
  TEST_OVERRIDES: 'on',
  WORKER_RETRY_FIRST_MS: '50', // a dead letter in less than a minute
  // What a killed worker had is delivered again after 10 s, the least that the broker takes, and not after 30 s.
  WORKER_INVISIBLE_MS: '10000',
  MYSQL_QUERY_TIMEOUT_MS: '5000',
} as const;
