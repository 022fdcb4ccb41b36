import { z } from 'zod';
import { mode, saleScope } from '../layer.js';

const DAY_MS = 86_400_000;
const pauseMs = z.int().min(1000).max(DAY_MS);

/** Limits how much an account can hold up the stock of a sale without paying. */
export const orderRules = z
  .strictObject({
    /** On by default: one account could keep the last unit from others by buying and cancelling repeatedly. */
    mode: mode.default('on'),
    sales: saleScope.default('all'),
    /** Maximum number of orders of a sale that a buyer may cancel. */
    cancelsMax: z.int().min(0).max(1000).default(10),
    /** Wait after a buyer's first expired unpaid order of a sale, ms. Doubles with each further one. Null: no wait. */
    unpaidPauseMs: pauseMs.nullable().default(null),
    /** Maximum pause, ms. A buyer can return to a sale of a day, but a buyer who never pays rarely holds units. */
    unpaidPauseMaxMs: pauseMs.default(3_600_000),
    /** On by default: where declines are not counted, criminals test stolen cards. */
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
