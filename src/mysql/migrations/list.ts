import type { Knex } from 'knex';
import * as firstTables from './0001-first-tables.js';
import * as payments from './0002-payments.js';
import * as coupons from './0003-coupons.js';
import * as deadLetterReplay from './0004-dead-letter-replay.js';
import * as reconcile from './0005-reconcile.js';
import * as refundAttempts from './0006-refund-attempts.js';
import * as entryRules from './0007-entry-rules.js';

export interface NamedMigration {
  /** Stays for ever: the database remembers it. */
  readonly name: string;
  readonly up: (knex: Knex) => Promise<void>;
}

/** In order. Imported, not searched for on the disk: the same list runs from source and from the build. */
export const MIGRATIONS: readonly NamedMigration[] = [
  { name: '0001-first-tables', up: firstTables.up },
  { name: '0002-payments', up: payments.up },
  { name: '0003-coupons', up: coupons.up },
  { name: '0004-dead-letter-replay', up: deadLetterReplay.up },
  { name: '0005-reconcile', up: reconcile.up },
  { name: '0006-refund-attempts', up: refundAttempts.up },
  { name: '0007-entry-rules', up: entryRules.up },
];
