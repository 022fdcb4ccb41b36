import { integer, type Keys } from '../key.js';

// The rebuilding of sales whose data Redis may have lost.

export const repair = {
  everyMs: integer({
    env: 'REPAIR_EVERY_MS',
    doc: 'Pause between two looks for sales that Redis may have lost data of; they are shut until they are repaired.',
    unit: 'ms',
    fallback: 500,
    min: 50,
    max: 60000,
  }),
  quietMs: integer({
    env: 'REPAIR_QUIET_MS',
    doc: 'The workers are through with what came before a loss once nothing of the sale is written for so long.',
    unit: 'ms',
    fallback: 1500,
    min: 0,
    max: 60000,
  }),
  waitMaxMs: integer({
    env: 'REPAIR_WAIT_MAX_MS',
    doc: 'How long a repair waits for the workers at most; what comes later claims the units that are left.',
    unit: 'ms',
    fallback: 15000,
    min: 0,
    max: 600000,
  }),
  leaseMs: integer({
    env: 'REPAIR_LEASE_MS',
    doc: 'After this long another keeper takes over from one that died; longer than one statement of MySQL takes.',
    unit: 'ms',
    fallback: 15000,
    min: 1000,
    max: 600000,
  }),
} as const satisfies Keys;
