import { expect } from 'chai';
import { join } from 'node:path';
import { newBatchId, type Batch } from '../../src/core/batch.js';
import { FIRST_TYPES } from '../../src/core/order-event.js';
import type { Purchase } from '../../src/core/purchase.js';
import { withoutUndefined } from '../../src/core/without-undefined.js';
import { MIGRATIONS } from '../../src/mysql/migrations.js';
import type { SchemaChanges } from '../../src/mysql/schema-changes.js';
import type * as batchesModule from '../../src/core/batch.js';
import type * as eventsModule from '../../src/core/order-event.js';
import type * as deadlinesModule from '../../src/core/payment-deadline.js';
import type * as outcomesModule from '../../src/core/outcome.js';
import type * as keysModule from '../../src/redis/keys.js';
import type * as migrationsModule from '../../src/mysql/migrations.js';
import { compiledRelease, RELEASE_BEFORE, releaseBeforeMissing } from '../helpers/release-before.js';

type Batches = typeof batchesModule;
type Events = typeof eventsModule;
type Deadlines = typeof deadlinesModule;
type Outcomes = typeof outcomesModule;
type Keys = typeof keysModule;
type Migrations = typeof migrationsModule;

/** Migrations that remove parts of the previous schema, with the reason why the previous programs need none. */
const TAKES_AWAY: Readonly<Record<string, string>> = {
  '0033-revoked-coupons': 'adds a word to a column of coupons, which the previous release does not know',
};

/** All changes that an ALTER may make, because programs of the previous release expect the old schema. */
const MAY_ADD: readonly RegExp[] = [
  // the INSERT of older programs does not name the column
  /^ADD COLUMN \w+ (?=.*\b(NULL|DEFAULT|GENERATED)\b)(?!.*\bNOT NULL\b(?!.*\b(DEFAULT|GENERATED)\b))/is,
  /^ADD (KEY|INDEX) /i,
  /^(ALGORITHM|LOCK)\s*=/i,
];
/** Migrations may add rows and fill empty values. */
const MAY_WRITE = /^\s*(INSERT|UPDATE|REPLACE)\b/i;

/** @returns what is wrong with a statement of a new migration, as sentences */
function takenAway(statement: string): string[] {
  if (/^\s*CREATE TABLE\b/i.test(statement) || MAY_WRITE.test(statement)) return [];
  if (!/^\s*ALTER TABLE \S+\s/i.test(statement)) return [`${statement.trim().slice(0, 60)}: adds nothing`];
  const clauses = statement
    .replace(/^\s*ALTER TABLE \S+\s+/i, '')
    .split(/,\s*(?=(?:ADD|ALTER|DROP|MODIFY|CHANGE|RENAME|CONVERT|ORDER|ALGORITHM|LOCK)\b)/i);
  return clauses.flatMap((clause) =>
    MAY_ADD.some((form) => form.test(clause))
      ? []
      : [`${clause.slice(0, 60)}: does not only add; programs of the previous release may need what it changes`],
  );
}

/** Returns the statements of a migration. */
async function statementsOf(up: (changes: SchemaChanges) => Promise<void>): Promise<string[]> {
  const statements: string[] = [];
  await up({
    create: async (...made) => void statements.push(...made),
    alter: async (_table, statement) => void statements.push(statement),
    write: async (_table, statement) => void statements.push(statement),
    fill: async (_table, statement) => void statements.push(statement),
  });
  return statements;
}

describe('guard: compatibility with the previous release', () => {
  before(function () {
    const missing = releaseBeforeMissing();
    if (missing === null) return;
    console.log(`    skipped: ${missing}`);
    this.skip();
  });

  /** Loads the same module from the previous release and from this release. */
  const both = async <M>(path: string, ours: Promise<M>): Promise<readonly [M, M]> => [
    (await import(join(compiledRelease(), 'dist', path))) as M,
    await ours,
  ];

  it('reads batches that the other release writes: plain, with metadata, with trace ids', async () => {
    const [before, now] = await both<Batches>('core/batch.js', import('../../src/core/batch.js'));
    const purchase = { userId: 'auth0|507f', requestId: 'k1', quantity: 2 };
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const samples: readonly { traceparent: string; trace: string; purchases: readonly Purchase[] }[] = [
      { traceparent: '', trace: '', purchases: [purchase, { ...purchase, requestId: 'k2' }] },
      { traceparent: '', trace: '', purchases: [{ ...purchase, metadata: { cart: '42' } }] },
      {
        traceparent,
        trace: '4bf92f3577b34da6a3ce929d0e0e4736',
        purchases: [{ ...purchase, traceId: '4bf92f3577b34da6a3ce929d0e0e4736' }],
      },
    ];
    for (const sample of samples) {
      const parts = { batchId: newBatchId(), saleId: '7', bucket: 3, epoch: 2, createdAtMs: 1764000000000 };
      const expected = { ...parts, purchases: sample.purchases.map(boughtIn) };
      for (const [writer, reader] of [
        [before, now],
        [now, before],
      ] as const) {
        const decoded = reader.decodeBatch(writer.sealBatch({ ...parts, ...sample }).body);
        expect(decoded.outcome, JSON.stringify(decoded)).to.equal('decoded');
        const { batch } = decoded as { batch: Batch };
        const { batchId, saleId, bucket, epoch, createdAtMs } = batch;
        const read = { batchId, saleId, bucket, epoch, createdAtMs, purchases: batch.purchases.map(boughtIn) };
        expect(read).to.deep.equal(expected);
      }
    }
  });

  it('reads events and payment deadlines that the other release writes', async () => {
    const events = await both<Events>('core/order-event.js', import('../../src/core/order-event.js'));
    const deadlines = await both<Deadlines>('core/payment-deadline.js', import('../../src/core/payment-deadline.js'));
    const orders = ['431234567890123456', '431234567890123457'];
    // Later events have their own version.
    const written = FIRST_TYPES.map((type) => {
      return {
        eventId: '41-x',
        type,
        saleId: '7',
        atMs: 1764000000000,
        orders,
        metadata: { [orders[0] as string]: { cart: '42' } },
      };
    });
    const deadline = { batchId: newBatchId(), saleId: '7', deadlineAtMs: 1764000000000, orders };
    for (const [writer, reader] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const decoded = events[reader].decodeOrderEvents(events[writer].encodeOrderEvents(written));
      expect(decoded).to.deep.equal({ outcome: 'decoded', events: written });
      const body = deadlines[writer].encodePaymentDeadline(deadline);
      expect(deadlines[reader].decodePaymentDeadline(body)).to.deep.equal({ outcome: 'decoded', deadline });
    }
  });

  it('finds the keys and entries that the other release keeps in Redis', async () => {
    const [before, now] = await both<Keys>('redis/keys.js', import('../../src/redis/keys.js'));
    const ref = { saleId: '7', bucket: 0 };
    expect(now.bucketKeys(ref)).to.include(before.bucketKeys(ref));
    const shared = (keys: Keys): readonly string[] => [
      keys.snapshotKey('7'),
      keys.notificationsChannel('7'),
      keys.RULES_KEY,
      keys.REPAIR_ASKS_KEY,
    ];
    expect(shared(now)).to.deep.equal(shared(before));

    const outcomes = await both<Outcomes>('core/outcome.js', import('../../src/core/outcome.js'));
    const entries = [
      { state: 'held', batchId: newBatchId(), quantity: 2 },
      { state: 'ordered', orderId: '431234567890123456', quantity: 1 },
      { state: 'released', orderId: `lost-${newBatchId()}`, quantity: 1 },
    ] as const;
    for (const entry of entries) {
      for (const [writer, reader] of [outcomes, outcomes.toReversed() as [Outcomes, Outcomes]]) {
        expect(reader.parseRequestEntry(writer.formatRequestEntry(entry))).to.deep.equal(entry);
      }
    }
  });

  it('only adds to the previous schema', async () => {
    const [before] = await both<Migrations>('mysql/migrations.js', import('../../src/mysql/migrations.js'));
    const had = before.MIGRATIONS.map(({ name }) => name);
    expect(
      MIGRATIONS.slice(0, had.length).map(({ name }) => name),
      'released migrations stay, in their order',
    ).to.deep.equal(had);
    for (const { name, up } of MIGRATIONS.slice(had.length)) {
      if (Object.hasOwn(TAKES_AWAY, name)) continue;
      for (const statement of await statementsOf(up)) expect(takenAway(statement), name).to.deep.equal([]);
    }
    const stale = Object.keys(TAKES_AWAY).filter(
      (name) => had.includes(name) || !MIGRATIONS.some((one) => one.name === name),
    );
    expect(stale, `in ${RELEASE_BEFORE.tag} already, or nowhere`).to.deep.equal([]);
  });
});

/** The parts of a purchase that make up an order, without the trace, which not every release has. */
const boughtIn = ({ userId, requestId, quantity, metadata }: Purchase) =>
  withoutUndefined({ userId, requestId, quantity, metadata });

describe('guard: rules for migrations', () => {
  const refused = [
    'ALTER TABLE orders DROP COLUMN reason',
    'ALTER TABLE orders ADD COLUMN gift TINYINT NULL, DROP KEY batch',
    'ALTER TABLE orders CHANGE reason why VARCHAR(32)',
    "ALTER TABLE orders MODIFY state ENUM('paid') NOT NULL",
    'ALTER TABLE payments ADD UNIQUE KEY order_id (order_id)',
    'ALTER TABLE orders ADD COLUMN gift TINYINT UNSIGNED NOT NULL, ADD KEY gift (gift)',
    'CREATE UNIQUE INDEX one ON payments (order_id)',
    'RENAME TABLE orders TO sold',
    'DELETE FROM coupons',
    'DROP TABLE coupons',
  ];
  it('refuses every statement that removes something', () => {
    for (const statement of refused) expect(takenAway(statement), statement).to.have.length(1);
  });

  const allowed = [
    'CREATE TABLE IF NOT EXISTS gifts (id INT NOT NULL PRIMARY KEY)',
    "ALTER TABLE orders\n  ADD COLUMN gift ENUM('a', 'b') NOT NULL DEFAULT 'a',\n  ADD COLUMN note TEXT NULL, ADD KEY gift (gift)",
    'ALTER TABLE sales ADD COLUMN due_at DATETIME(3) GENERATED ALWAYS AS (closes_at) VIRTUAL, ALGORITHM=INPLACE, LOCK=NONE',
    'UPDATE dead_letters SET parked_batch = batch_id',
  ];
  it('accepts every statement that only adds something', () => {
    for (const statement of allowed) expect(takenAway(statement), statement).to.deep.equal([]);
  });
});
