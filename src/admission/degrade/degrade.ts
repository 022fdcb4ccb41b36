import { z } from 'zod';
import {
  mode,
  type Endpoint,
  type Mode,
  type Layer,
  type Refused,
  type RulesOf,
  type AdmissionRequest,
} from '../layer.js';
import type { Dependency } from '../../core/errors.js';
import { DEPENDENCIES } from '../breaker/breaker-rules.js';
import { hash32 } from '../../core/bucket.js';
import type { AdmissionMetrics } from '../metrics.js';

/**
 * How complete an answer is.
 * - L0 full
 * - L1 an earlier answer, marked as stale
 * - L2 the essential fields of an earlier answer
 * - L3 the right form, but no content
 * - L4 refused at once
 */
export const LEVELS = ['L0', 'L1', 'L2', 'L3', 'L4'] as const;
export type Level = (typeof LEVELS)[number];

const RANKS: Readonly<Record<Level, number>> = { L0: 0, L1: 1, L2: 2, L3: 3, L4: 4 };

/** Whether answers at level `one` contain less than at level `other`. */
const isBelow = (one: Level, other: Level): boolean => RANKS[one] > RANKS[other];

const anyLevel = z.enum(LEVELS);
/** The levels of a purchase. A purchase is either made or not, so an old or an empty answer would be false. */
const allOrNothing = z.enum(['L0', 'L4'], { error: 'must be L0 or L4 for a purchase' });

/** Percentage of the users to whom a switch applies. A user within 10 % is also within 20 %. */
const percent = z.number().min(0).max(100).default(100);
const anySwitch = z.strictObject({ level: anyLevel.default('L0'), percent }).prefault({});

/** The switches that operators set. */
const switches = z.strictObject({
  purchase: z.strictObject({ level: allOrNothing.default('L0'), percent }).prefault({}),
  status: anySwitch,
  sale: anySwitch,
  order: anySwitch,
});

interface Asked {
  readonly purchase: 'L0' | 'L4';
  readonly status: z.infer<typeof anyLevel>;
  readonly sale: z.infer<typeof anyLevel>;
  readonly order: z.infer<typeof anyLevel>;
}

const askedOf = ({ purchase, status, sale, order }: Asked) =>
  z
    .strictObject({
      purchase: allOrNothing.default(purchase),
      status: anyLevel.default(status),
      sale: anyLevel.default(sale),
      order: anyLevel.default(order),
    })
    .prefault({});

/** The levels that an open breaker requires. Neither a purchase nor a sale page needs MySQL. */
const asked = z.strictObject({
  redis: askedOf({ purchase: 'L4', status: 'L1', sale: 'L1', order: 'L0' }),
  rocketmq: askedOf({ purchase: 'L4', status: 'L0', sale: 'L0', order: 'L0' }),
  mysql: askedOf({ purchase: 'L0', status: 'L1', sale: 'L0', order: 'L1' }),
});

const cache = z
  .strictObject({
    /** Maximum age of an answer at L1 and L2, ms. */
    ttlMs: z.int().min(100).max(3_600_000).default(60_000),
    /** The maximum age is multiplied by this factor after each failure of the source in a row. */
    factor: z.number().gt(0).max(1).default(0.7),
    /** Lower limit of the maximum age, ms. */
    ttlMinMs: z.int().min(0).max(3_600_000).default(5000),
  })
  .refine((one) => one.ttlMinMs <= one.ttlMs, { error: 'must not be larger than ttlMs', path: ['ttlMinMs'] });

/** The rules for reduced answers under overload. */
export const degradeRules = z.strictObject({
  mode: mode.default('off'),
  switches: switches.prefault({}),
  asked: asked.prefault({}),
  cache: cache.prefault({}),
});

export type DegradeRules = z.infer<typeof degradeRules>;

export interface Ruling {
  readonly level: Level;
  /** True if a breaker requires the level, so that the source of the answer must not be called. */
  readonly sparesSource: boolean;
}

/** Builds all rulings in advance, so that a request allocates nothing. */
const rulingsOf = (sparesSource: boolean): Readonly<Record<Level, Ruling>> =>
  Object.fromEntries(LEVELS.map((level) => [level, Object.freeze({ level, sparesSource })])) as Record<Level, Ruling>;
const BY_SWITCH = rulingsOf(false);
const BY_BREAKER = rulingsOf(true);

/**
 * Returns the level of the switch for this user, or of an open breaker if it is lower. Asks breakers only where they
 * matter, because asking may use up a place in a trial.
 * @param who the user, or the client address where no token is needed
 */
export function rulingFor(
  { switches, asked }: Pick<DegradeRules, 'switches' | 'asked'>,
  endpoint: Endpoint,
  who: string,
  refuses: (dependency: Dependency) => boolean,
): Ruling {
  let level = switchedFor(switches[endpoint], who);
  let sparesSource = false;
  for (const dependency of DEPENDENCIES) {
    if (level === 'L4') break;
    const wanted = asked[dependency][endpoint];
    const matters = isBelow(wanted, level) || (wanted !== 'L0' && !sparesSource);
    if (!matters || !refuses(dependency)) continue;
    sparesSource = true;
    if (isBelow(wanted, level)) level = wanted;
  }
  return sparesSource ? BY_BREAKER[level] : BY_SWITCH[level];
}

function switchedFor({ level, percent }: DegradeRules['switches'][Endpoint], who: string): Level {
  if (level === 'L0' || percent >= 100) return level;
  return percentileOf(who) < percent ? level : 'L0';
}

const TWO_TO_32 = 2 ** 32;

/**
 * Returns 0 to just below 100 for a user, always and in every process the same. Without the last steps of MurmurHash3,
 * the choice would depend on the bucket of the user.
 * @param salt another salt gives other numbers
 */
export function percentileOf(who: string, salt = 0): number {
  let hash = hash32(who) ^ Math.imul(salt, 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) * 100) / TWO_TO_32;
}

interface DegradeParts {
  readonly rules: RulesOf<DegradeRules>;
  /** Whether the breaker of this dependency is open for this request. */
  readonly refuses: (dependency: Dependency) => boolean;
  readonly metrics: AdmissionMetrics;
}

export class Degrade {
  readonly #parts: DegradeParts;

  constructor(parts: DegradeParts) {
    this.#parts = parts;
  }

  modeOf(userId: string | null): Mode {
    return this.#parts.rules(userId).mode;
  }

  /** False if every request gets the full answer. A canary cannot turn the layer on. */
  get isOn(): boolean {
    return this.modeOf(null) !== 'off';
  }

  /**
   * Call it once per request.
   * @param who the user, or the client address where no token is needed
   * @returns null if the layer is off or only counts
   */
  rulingOf(endpoint: Endpoint, who: string): Ruling | null {
    const now = this.#parts.rules(userIdOf(endpoint, who));
    if (now.mode === 'off') return null;
    const ruling = this.#rule(now, now.mode, endpoint, who);
    return now.mode === 'on' ? ruling : null;
  }

  /** Returns only the level, even in a dry run, which `Admission` handles. L0 while the layer is off. */
  levelOf(endpoint: Endpoint, who: string): Level {
    const now = this.#parts.rules(userIdOf(endpoint, who));
    return now.mode === 'off' ? 'L0' : this.#rule(now, now.mode, endpoint, who).level;
  }

  #rule(now: DegradeRules, mode: 'dry_run' | 'on', endpoint: Endpoint, who: string): Ruling {
    const { refuses, metrics } = this.#parts;
    const ruling = rulingFor(now, endpoint, who, refuses);
    if (ruling.level !== 'L0') metrics.degraded(endpoint, ruling.level, mode);
    return ruling;
  }
}

/** A sale page needs no token. */
const userIdOf = (endpoint: Endpoint, who: string): string | null => (endpoint === 'sale' ? null : who);

/** Purchases, payments and cancellations have no reduced form. They are allowed at every level below L4. */
export const refusesChange = (ruling: Ruling | null): boolean => ruling?.level === 'L4';

/** Sets no time of its own, because the table of codes says when to try again. */
const DEGRADED: Refused = { word: 'degraded', retryAfterMs: null };

/**
 * Refuses purchases before any work. Reads get reduced answers instead (`DegradedReads`); the routes of payments and
 * cancellations refuse by themselves.
 */
export class DegradeLayer implements Layer {
  readonly name = 'degrade';
  readonly #degrade: Degrade;

  constructor(degrade: Degrade) {
    this.#degrade = degrade;
  }

  modeOf(userId: string | null): Mode {
    return this.#degrade.modeOf(userId);
  }

  /** Never refuses: a switch for a share of users needs the user. */
  anonymous(): null {
    return null;
  }

  buyer({ endpoint }: AdmissionRequest, userId: string): Refused | null {
    return endpoint === 'purchase' && this.#degrade.levelOf(endpoint, userId) === 'L4' ? DEGRADED : null;
  }
}
