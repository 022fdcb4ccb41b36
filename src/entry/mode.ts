import { z } from 'zod';

export const mode = z.enum(['off', 'dry_run', 'on']);
export type Mode = z.infer<typeof mode>;
