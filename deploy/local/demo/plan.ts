// The plan of the simulated buyers of `npm start -- --traffic`: only data and pure functions.

/** A kind of sale. One sale of each kind is always announced or open, and the next sale is made when it ends. */
export interface SaleKind {
  readonly title: string;
  readonly priceCents: number;
  readonly stock: number;
  readonly limitPerBuyer: number;
  readonly buckets: number;
  /** Time for which the sale is visible before it opens. */
  readonly announcedMs: number;
  readonly openForMs: number;
  /** Time from the end of a sale to the opening of the next. */
  readonly pauseMs: number;
  /** Returns the buyers per second at this time after the opening (negative before it). */
  readonly buyersPerSecond: (sinceOpeningMs: number) => number;
}

/** Time for which buyers of the hot sale press the button immediately. */
const RUSH_MS = 3_000;
/** Time between two peaks of the steady sale. */
const TIDE_MS = 60_000;
/** Buyers of the waiting room come in groups. The next group comes after most of the previous group were admitted. */
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

/** Admission rate of the waiting room. */
export const ADMITTED_PER_SECOND = 1;

/** The habits of buyers, with their percentages. */
const HABITS = {
  /** Pays after some seconds. */
  pays: 40,
  /** The first payment is declined. Half of these buyers pay with another card, half give up. */
  is_declined: 9,
  cancels: 12,
  /** The order expires. */
  never_pays: 10,
  /** Pays after the order expired, so the money is owed back. */
  pays_too_late: 3,
  /** Clicks twice and reloads the page. */
  repeats: 10,
  /** Repeats a key with another quantity. */
  changes_quantity: 3,
  /** Wants more units than the limit per buyer. */
  is_greedy: 5,
  /** Sends no token. */
  has_no_token: 4,
  /** Bypasses the waiting room of the sale. Without a waiting room, buys and pays. */
  jumps_the_queue: 4,
} as const;

export type Habit = keyof typeof HABITS;

const HABIT_NAMES = Object.keys(HABITS) as Habit[];
/** Shares no divisor with 100, so a hundred consecutive buyers have every habit exactly as often as its percentage. */
const HABIT_STRIDE = 61;

/**
 * Returns the habit of the nth buyer of a kind of sale. Habits are dealt in turn, not drawn at random, so every habit
 * comes early.
 * @param nth from 0
 */
export function habitOf(nth: number): Habit {
  let left = (nth * HABIT_STRIDE) % 100;
  return HABIT_NAMES.find((habit) => (left -= HABITS[habit]) < 0) ?? 'pays';
}

/**
 * Returns when the next sale of a kind opens and when it is announced, Unix ms. @param lastClosedAtMs null for the
 * first sale
 */
export function nextSale(
  { announcedMs, pauseMs }: SaleKind,
  nowMs: number,
  lastClosedAtMs: number | null,
): { readonly announcedAtMs: number; readonly opensAtMs: number } {
  // if the machine slept, the next sale is late and is announced immediately
  const opensAtMs = Math.max(nowMs + announcedMs, lastClosedAtMs === null ? 0 : lastClosedAtMs + pauseMs);
  return { announcedAtMs: opensAtMs - announcedMs, opensAtMs };
}

/** Prevents a crowd after a pause of the programs or of this process. */
const STEP_MAX_MS = 1_000;

/** Turns a rate into whole buyers. */
export class Arrivals {
  #due = 0;

  /** @returns the number of buyers who come in a step of this length */
  after(stepMs: number, perSecond: number): number {
    this.#due += (Math.min(stepMs, STEP_MAX_MS) / 1000) * perSecond;
    const come = Math.floor(this.#due);
    this.#due -= come;
    return come;
  }
}

/** Time of the first occurrence of each fault, and its interval, ms. */
export const FAULT_TIMES = {
  poisoned_batch: { firstMs: 3_000, everyMs: 150_000 },
  half_message: { firstMs: 12_000, everyMs: 120_000 },
  killed_worker: { firstMs: 35_000, everyMs: 60_000 },
} as const;

export type Fault = keyof typeof FAULT_TIMES;

/** Settings of the programs with traffic. The environment overrides them. */
export const TRAFFIC_ENV = {
  ORDER_PAYMENT_WINDOW_MS: '45000', // short enough to watch orders expire
  HOT_SALE_PER_SECOND: '20',
  // Redis forgets a sale minutes after its end, so that hours of traffic need no more memory than minutes
  RETIRE_AFTER_MS: '600000',
  MARKER_LIFE_MS: '900000',
  RECONCILE_EVERY_MS: '30000',
  RECONCILE_KEEP_MS: '3600000',
  OUTBOX_KEEP_MS: '600000',
} as const;

/** Additional settings with faults. */
export const FAULTS_ENV = {
  LOG_LEVEL: 'error', // the demo reports each fault: warnings of programs would hide that line
  TEST_OVERRIDES: 'on',
  WORKER_RETRY_FIRST_MS: '50', // creates a dead letter in less than a minute
  // The broker redelivers messages of a killed worker after 10 s, its minimum, instead of 30 s.
  WORKER_INVISIBLE_MS: '10000',
  MYSQL_QUERY_TIMEOUT_MS: '5000',
} as const;
