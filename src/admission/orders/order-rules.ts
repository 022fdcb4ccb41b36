import { z } from 'zod';
import { mode, saleScope } from '../layer.js';

const DAY_MS = 86_400_000;
const pauseMs = z.int().min(1000).max(DAY_MS);

/** Limits how much an account can hold up the stock of a sale without paying. */
export const orderRules = z
  .strictObject({
    /**
     * On by default, because a single account could keep the last unit from others by repeatedly buying and cancelling.
     */
    mode: mode.default('on'),
    sales: saleScope.default('all'),
    /** Maximum number of orders of a sale that a buyer may cancel. */
    cancelsMax: z.int().min(0).max(1000).default(10),
    /**
     * How long a buyer must wait after their first unpaid order of a sale has expired, ms. Doubles with each further
     * expired order. Null disables it.
     */
    unpaidPauseMs: pauseMs.nullable().default(null),
    /**
     * Maximum pause, ms. An hour by default: a buyer can return to a sale that lasts a day, and a buyer who never pays
     * holds units only a few times.
     */
    unpaidPauseMaxMs: pauseMs.default(3_600_000),
    /** Limits declined charges. On by default, because where declines are not counted, criminals test stolen cards. */
    declines: z
      .strictObject({
        mode: mode.default('on'),
        /** Maximum number of declines of one order. After that, no card is charged for the order. */
        perOrder: z.int().min(1).max(100).default(8),
        /** Maximum number of declines of all orders of a buyer within an hour. */
        perBuyerHour: z.int().min(1).max(1000).default(20),
      })
      .prefault({}),
  })
  .refine(({ unpaidPauseMs, unpaidPauseMaxMs }) => unpaidPauseMaxMs >= (unpaidPauseMs ?? 0), {
    path: ['unpaidPauseMaxMs'],
    message: 'must not be less than unpaidPauseMs',
  });
export type OrderRules = z.infer<typeof orderRules>;
