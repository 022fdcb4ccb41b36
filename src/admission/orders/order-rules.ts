import { z } from 'zod';
import { mode, saleScope } from '../layer.js';

const DAY_MS = 86_400_000;
const pauseMs = z.int().min(1000).max(DAY_MS);

/** What one account may do with the stock of a sale without paying. */
export const orderRules = z
  .strictObject({
    /** On from the start: one account could hold the last unit by buying and cancelling again and again. */
    mode: mode.default('on'),
    sales: saleScope.default('all'),
    /** Orders of one sale that one buyer may cancel. */
    cancelsMax: z.int().min(0).max(1000).default(10),
    /** How long a buyer waits after their first order of a sale that expired unpaid; twice as long after each further one. Null: not at all. */
    unpaidPauseMs: pauseMs.nullable().default(null),
    /** The longest pause. An hour: buyers come back to a sale of a day, and one who never pays holds units a few times. */
    unpaidPauseMaxMs: pauseMs.default(3_600_000),
    /** Charges that the provider declined. On unless the rules say otherwise: stolen cards are tried where nobody counts. */
    declines: z
      .strictObject({
        mode: mode.default('on'),
        /** Of one order; then no other card is charged for it. */
        perOrder: z.int().min(1).max(100).default(8),
        /** Of all orders of one buyer within an hour. */
        perBuyerHour: z.int().min(1).max(1000).default(20),
      })
      .prefault({}),
  })
  .refine(({ unpaidPauseMs, unpaidPauseMaxMs }) => unpaidPauseMaxMs >= (unpaidPauseMs ?? 0), {
    path: ['unpaidPauseMaxMs'],
    message: 'must not be less than unpaidPauseMs',
  });
export type OrderRules = z.infer<typeof orderRules>;
