/* oxlint-disable-next-line import/no-cycle */
import { sizeOf } from './refused.js';

export const two = (): number => sizeOf.length + 1;
