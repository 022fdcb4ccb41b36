// Code that lint must refuse. If a rule stops working, its comment is unused and `npm run lint` fails.
/* oxlint-disable-next-line typescript/consistent-type-imports */
import { Stats } from 'node:fs';
/* oxlint-disable-next-line import/no-cycle */
import { two } from './refused-cycle.js';

export const sizeOf = (stats: Stats): number => stats.size + two();

export function one(ask: () => Promise<boolean>, word: 'a' | 'b'): number {
  /* oxlint-disable-next-line typescript/no-floating-promises */
  ask();
  /* oxlint-disable-next-line typescript/switch-exhaustiveness-check */
  switch (word) {
    case 'a':
  }
  return 1;
}
