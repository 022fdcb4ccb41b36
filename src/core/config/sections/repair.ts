import { integer, text, type Keys } from '../key.js';

// The rebuilding of sales whose data Redis may have lost.

export const repair = {
  everyMs: integer({
    env: 'REPAIR_EVERY_MS',
    doc: 'Pause between two checks for sales that Redis may have lost data of; they are locked until they are repaired.',
    unit: 'ms',
    fallback: 500,
    min: 50,
    max: 60000,
  }),
  quietMs: integer({
    env: 'REPAIR_QUIET_MS',
    doc: 'Once the workers have received what came before a loss, and nothing of the sale was written for so long, they are done with it.',
    unit: 'ms',
    fallback: 1500,
    min: 0,
    max: 60000,
  }),
  namesrv: text({
    env: 'NAMESRV_ADDR',
    doc: 'Name server of RocketMQ: with it a repair asks the broker whether the workers have received what came before. Without it, it only waits until they write nothing more.',
    optional: true,
    minLength: 3,
    range: 'host:port; several, separated by semicolons, are asked in turn',
  }),
  waitMaxMs: integer({
    env: 'REPAIR_WAIT_MAX_MS',
    doc: 'How long a repair waits for the workers at most; batches that come later get units only while some are left.',
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
