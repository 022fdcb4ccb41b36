import { z } from 'zod';

/** `dry_run` counts what a layer would have refused, and refuses nothing. */
export const mode = z.enum(['off', 'dry_run', 'on']);
export type Mode = z.infer<typeof mode>;
