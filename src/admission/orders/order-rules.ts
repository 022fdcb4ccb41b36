import { z } from 'zod';
import { mode, saleScope } from '../layer.js';

const DAY_MS = 86_400_000;
const pauseMs = z.int().min(1000).max(DAY_MS);

/** Limits how an account may hold the stock of a sale without paying. */
export const orderRules = z
  .strictObject({
    /** On by default: a single account could hold the last unit by repeated buying and cancelling. */
    mode: mode.default('on'),
    sales: saleScope.default('all'),
    /** The most orders of a sale that a buyer may cancel. */
    cancelsMax: z.int().min(0).max(1000).default(10),
    /**
     * Pause of a buyer after their first order of a sale that expired unpaid, ms. Doubles after each further order.
     * Null disables it.
     */
    unpaidPauseMs: pauseMs.nullable().default(null),
    /**
     * The longest pause, ms. An hour by default: a buyer can return to a sale of a day, and a buyer who never pays
     * holds units only a few times.
     */
    unpaidPauseMaxMs: pauseMs.default(3_600_000),
    /** Limits declined charges. On by default: stolen cards are tried where declines are not counted. */
    declines: z
      .strictObject({
        mode: mode.default('on'),
        /** The most declines of one order. After that no card is charged for the order. */
        perOrder: z.int().min(1).max(100).default(8),
        /** The most declines of all orders of a buyer within an hour. */
        perBuyerHour: z.int().min(1).max(1000).default(20),
      })
      .prefault({}),
  })
  .refine(({ unpaidPauseMs, unpaidPauseMaxMs }) => unpaidPauseMaxMs >= (unpaidPauseMs ?? 0), {
    path: ['unpaidPauseMaxMs'],
    message: 'must not be less than unpaidPauseMs',
  });
export type OrderRules = z.infer<typeof orderRules>;
