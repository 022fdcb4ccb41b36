import { z } from 'zod';
import { mode } from '../mode.js';
import { LEVELS } from './level.js';

const anyLevel = z.enum(LEVELS);
/** A purchase is made or it is not; an old or an empty answer to it would be a lie. */
const allOrNothing = z.enum(['L0', 'L4'], { error: 'a purchase knows L0 and L4 only' });

/** Share of the users that a switch is for; who is in at 10 is in at 20 too. */
const percent = z.number().min(0).max(100).default(100);
const anySwitch = z.strictObject({ level: anyLevel.default('L0'), percent }).prefault({});

/** What an operator has set. */
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

/** What the breaker of a dependency asks for while it is open. MySQL is not on the way of a purchase, nor of a sale page. */
const asked = z.strictObject({
  redis: askedOf({ purchase: 'L4', status: 'L1', sale: 'L1', order: 'L0' }),
  rocketmq: askedOf({ purchase: 'L4', status: 'L0', sale: 'L0', order: 'L0' }),
  mysql: askedOf({ purchase: 'L0', status: 'L1', sale: 'L0', order: 'L1' }),
});

const cache = z
  .strictObject({
    /** How old an answer may be that is given at L1 and L2. */
    ttlMs: z.int().min(100).max(3_600_000).default(60_000),
    /** Each failure of the source makes it so much less. */
    factor: z.number().gt(0).max(1).default(0.7),
    /** But never less than this. */
    ttlMinMs: z.int().min(0).max(3_600_000).default(5000),
  })
  .refine((one) => one.ttlMinMs <= one.ttlMs, { error: 'ttlMinMs must not be above ttlMs' });

/** How much of an answer is given while there is too much to do. */
export const degradeRules = z.strictObject({
  mode: mode.default('off'),
  switches: switches.prefault({}),
  asked: asked.prefault({}),
  cache: cache.prefault({}),
});

export type DegradeRules = z.infer<typeof degradeRules>;
