import { z } from 'zod';

/** How a layer of the entry stands: not at all, counting what it would refuse, or refusing. */
export const mode = z.enum(['off', 'dry_run', 'on']);
export type Mode = z.infer<typeof mode>;
