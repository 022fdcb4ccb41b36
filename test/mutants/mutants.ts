import type { Finding } from '../invariants/check-sale.js';

/** One change of one file below `src/` or `lua/`. */
export interface Edit {
  readonly file: string;
  /** Stands there exactly once, or the mutant is stale. */
  readonly find: string;
  readonly replace: string;
}

/** The programs with one rule broken on purpose. A row of the fault matrix has to go red. */
export interface Mutant {
  readonly name: string;
  /** The rule that it breaks. */
  readonly breaks: string;
  /** Which promises that costs; none: the sale keeps them, and sells nothing more. */
  readonly invariants: readonly Finding['invariant'][];
  readonly edits: readonly Edit[];
  /**
   * Names of rows, the most telling one first; the next is tried only when it stays green. What is edited in a script
   * stands behind its first line, by which `atScriptCall` knows it.
   */
  readonly rows: readonly string[];
  /** What the row or the checker says then. A row that is red for another reason proves nothing. */
  readonly says: RegExp;
  /** Tried one after the other; default 1. */
  readonly seeds?: readonly number[];
}

/** Those that need Redis restarted come first: every sale that others have left would be rebuilt with theirs. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'late-batches-claim-nothing',
    breaks: 'a batch of an older epoch takes its units in the present one (rule 11)',
    invariants: ['I3'],
    edits: [
      {
        file: 'src/orders/draft-rows.ts',
        find: 'epoch < (terms.get(saleId)?.epoch ?? 0);',
        replace: 'epoch < 0;',
      },
    ],
    rows: ['R4/units_lost'],
    says: /I3 ann\/k1 was answered 2xx and ended failed\/oversold_guard/,
  },
  {
    name: 'keeper-trusts-any-server',
    breaks: 'a sale that is found on another server than it was loaded on is rebuilt there, and sells again (rule 9)',
    invariants: [],
    edits: [
      {
        file: 'lua/bucket-status-1.lua',
        find: 'sale[3] == own_run and 1 or 0 }',
        replace: '1 }',
      },
    ],
    rows: ['R1'],
    says: /the same programs sell again/,
  },
  {
    name: 'decide-leaves-no-tombstone',
    breaks: 'a batch that was decided aborted stays so (rule 1)',
    invariants: ['I4', 'I8'],
    edits: [
      {
        file: 'lua/resolve-2.lua',
        find: "redis.call('SET', KEYS[1], 'aborted', 'PX', ARGV[2])\nreturn 'aborted'",
        replace: "return 'aborted'",
      },
    ],
    rows: ['T2'],
    says: /the check-back has aborted the batch/,
  },
  {
    name: 'late-deduct-passes-the-tombstone',
    breaks: 'the first writer of a marker wins: a deduct that comes after the check-back takes nothing (rule 1)',
    invariants: ['I8'],
    edits: [
      {
        file: 'lua/deduct-6.lua',
        find: "if kind then return { kind == 'deducted'",
        replace: "if kind and kind ~= 'aborted' then return { kind == 'deducted'",
      },
    ],
    rows: ['T13/stall'],
    says: /the marker of .*, which never changes: expected "aborted", found "deducted"/,
  },
  {
    name: 'marker-is-looked-at-after-the-stock',
    breaks: 'whoever lost the reply of a deduct asks for its marker, which counts before the stock (rules 1 and 2)',
    invariants: ['I3', 'I8'],
    edits: [
      {
        file: 'lua/deduct-6.lua',
        find: 'if kind then return {',
        replace: "if kind and (tonumber(redis.call('GET', KEYS[1])) or 0) > 0 then return {",
      },
      {
        file: 'src/purchase/place-batch.ts',
        find: 'const resolved = await store.resolve(batch);',
        replace:
          "const again = await store.deduct(batch); if (again.outcome !== 'outcome_unknown') return again;" +
          ' const resolved = again.outcome;',
      },
    ],
    rows: ['T8'],
    says: /I3 ann\/k1 .* has no row/,
  },
  {
    name: 'check-back-rolls-back-on-a-fault',
    breaks: 'no answer while finding out is no rollback (rule 2)',
    invariants: ['I3', 'I4'],
    edits: [
      {
        file: 'src/rocketmq/checker.ts',
        find: "the broker will ask again');\n      answer = 'no_answer';",
        replace: "the broker will ask again');\n      answer = 'rollback';",
      },
    ],
    rows: ['T10/throws'],
    says: /I3 .* has no row/,
  },
  {
    name: 'deduct-forgets-what-a-buyer-has',
    breaks: 'the limit counts when units are taken, not only when precheck looks',
    invariants: ['I2', 'I3'],
    edits: [
      {
        file: 'lua/deduct-6.lua',
        find: 'elseif total > limit then',
        replace: 'elseif quantity > limit then',
      },
    ],
    rows: ['G4'],
    says: /two keys of the late buyer: .* found \["accepted","accepted"\]/,
  },
  {
    name: 'limit-looks-at-one-purchase',
    breaks: 'the limit counts all that a buyer has, in the books and in the batch',
    invariants: ['I2'],
    edits: [
      {
        file: 'lua/precheck-4.lua',
        find: 'elseif (tonumber(bought[i]) or 0) + units > limit then',
        replace: 'elseif quantity > limit then',
      },
      {
        file: 'lua/deduct-6.lua',
        find: 'elseif total > limit then',
        replace: 'elseif quantity > limit then',
      },
    ],
    rows: ['G2'],
    says: /I2 buyer lim has 4 live units/,
  },
  {
    name: 'the-last-unit-is-not-sold',
    breaks: 'nobody hears sold_out while units for him are left',
    invariants: ['I7'],
    edits: [
      {
        file: 'lua/precheck-4.lua',
        find: 'elseif available < quantity then',
        replace: 'elseif available <= quantity then',
      },
    ],
    rows: ['G1'],
    says: /I7 .* got sold_out, and 1 units are left/,
  },
  {
    name: 'last-guard-forgets-the-stock',
    breaks: 'MySQL sells no unit beyond the stock, whatever Redis gave away (rule 6)',
    invariants: ['I1'],
    edits: [
      {
        file: 'src/mysql/write-orders.ts',
        find: 'AND epoch = ? AND sold + ? <= stock',
        replace: 'AND epoch = ? AND sold + ? >= 0',
      },
    ],
    rows: ['D6'],
    says: /I1 sold \d+ of \d+/,
  },
  {
    name: 'rows-found-are-counted-again',
    breaks: 'rows that were there before are not counted again (rule 6)',
    invariants: ['I1'],
    edits: [
      {
        file: 'src/mysql/insert-orders.ts',
        find: 'const INSERT_LIVE = `INSERT INTO orders',
        replace: 'const INSERT_LIVE = `INSERT IGNORE INTO orders',
      },
    ],
    rows: ['M5'],
    says: /I1 sold says 50, live orders have 40 units/,
  },
  {
    name: 'ack-before-commit',
    breaks: 'rows first, then the ledger, then the ack (rule 8)',
    invariants: ['I3'],
    edits: [
      {
        file: 'src/orders/handle-deliveries.ts',
        find: '  const results = await recordBatches(batches, ports, options);',
        replace:
          '  await Promise.all(held.map(({ delivery }) => delivery.ack()));\n' +
          '  const results = await recordBatches(batches, ports, options);',
      },
    ],
    rows: ['M9'],
    says: /I3 .* has no row/,
  },
  {
    name: 'settle-moves-what-was-released',
    breaks: 'settle moves what its batch holds, and nothing else (rule 7)',
    invariants: ['I5', 'I8'],
    edits: [
      {
        file: 'lua/mark-recorded-4.lua',
        find: 'if entry and string.sub(entry, 1, #prefix) == prefix then',
        replace: 'if entry then',
      },
      {
        file: 'lua/mark-recorded-4.lua',
        find: 'string.sub(entry, #prefix + 1)',
        replace: "string.match(entry, '%d+$')",
      },
      {
        file: 'src/orders/draft-rows.ts',
        find: '} else if (isLive(row.state)) {',
        replace: "} else if (isLive(row.state) || row.state === 'cancelled') {",
      },
    ],
    rows: ['C6'],
    says: /I5 .* is cancelled in MySQL and ordered in Redis/,
  },
  {
    name: 'release-gives-twice',
    breaks: 'units of a request go back once (rule 7)',
    invariants: ['I4', 'I5'],
    edits: [
      {
        file: 'lua/release-4.lua',
        find: "(state == 'ordered' and id == ARGV[4])",
        replace: '(id == ARGV[4])',
      },
    ],
    rows: ['C3/release'],
    says: /I4 units left differ by -3 between Redis and MySQL/,
  },
  {
    name: 'expiry-lets-go-of-its-locks',
    breaks: 'which orders expire, and the promise of their units, is one transaction (rule 7)',
    invariants: ['I1', 'I5'],
    edits: [
      {
        file: 'src/mysql/order-transitions.ts',
        find: 'return await transaction(async (tx) => expireLocked(tx, await lock(tx, outOfStep)));',
        replace:
          'const due = await transaction((tx) => lock(tx, outOfStep)); await clock.sleep(50);' +
          ' return await transaction((tx) => expireLocked(tx, due));',
      },
      {
        file: 'src/mysql/move-orders.ts',
        find: 'assert(affectedRows === orders.length, `${affectedRows} of ${orders.length} locked orders moved to ${move}`);',
        replace: 'void affectedRows;',
      },
    ],
    rows: ['C4'],
    says: /I5 .* is paid in MySQL and released in Redis/,
  },
  {
    name: 'pay-looks-at-no-state',
    breaks: 'an order that has ended cannot be paid: the row is asked for its state, and the statement names it',
    invariants: ['I6', 'I1'],
    edits: [
      {
        file: 'src/mysql/order-transitions.ts',
        find: "if (!mayMove(order.state, 'paid')) return",
        replace: "if (order.state === 'paid') return",
      },
      {
        file: 'src/mysql/move-orders.ts',
        find: "locked.whereIn('state', statesBefore(move)).update(",
        replace: 'locked.update(',
      },
    ],
    rows: ['C4'],
    says: /I6 order \d+ was paid and cancelled|pay and cancel of \d+: expected \[200,409\], found \[200,200\]/,
  },
];
