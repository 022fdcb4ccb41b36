import { z } from 'zod';

/** A layer that is on, that only counts what it would have refused, or that is not there. */
export const mode = z.enum(['off', 'dry_run', 'on']);
export type Mode = z.infer<typeof mode>;
