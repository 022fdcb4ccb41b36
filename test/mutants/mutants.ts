import type { Finding } from '../invariants/check-sale.js';

/** A change of one file. */
export interface Edit {
  /**
   * Path below `src/` or `lua/`. The simulation has no scripts and no MySQL, so a rule that these enforce must be
   * broken in their models in `test/helpers/memory/` too.
   */
  readonly file: string;
  /** Must occur in the file exactly once, or the mutant is stale. */
  readonly find: string;
  readonly replace: string;
}

/** How chaos must notice a mutant: a scenario fails. */
interface CaughtByChaos {
  /**
   * Names of scenarios, the most likely first. Each is tried only if the previous scenario stays green. An edit must
   * keep the first line of a script, which `atScriptCall` looks for.
   */
  readonly scenarios: readonly string[];
  /** Invariants that break. Empty: all hold, but the sale no longer sells anything. */
  readonly invariants: readonly Finding['invariant'][];
  /** Text in the reason or a finding. A scenario that is red for another reason proves nothing. */
  readonly says: RegExp;
  /** Number of seeds, tried one after another; default 1. */
  readonly seeds?: readonly number[];
}

/** A planted bug: the programs with one rule broken on purpose. The simulation, chaos or both must notice it. */
export interface Mutant {
  readonly name: string;
  /** The rule that it breaks. */
  readonly breaks: string;
  readonly edits: readonly Edit[];
  /**
   * A seed at which a promise was broken, where the search starts. `npm run mutants -- --find-seeds` writes another seed
   * here after a change of the code.
   */
  readonly simulation?: { readonly fromSeed: number };
  readonly chaos?: CaughtByChaos;
}

/**
 * Chaos runs them in this order. Scenarios that restart Redis come first, because otherwise the keeper would have to
 * rebuild every sale of the others.
 */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'signatures-are-not-checked',
    breaks: 'a message that no program of ours has signed makes no order',
    edits: [
      {
        file: 'src/core/message-signatures.ts',
        find: "if (verdict === 'signed') return true;",
        replace: "if (verdict !== 'unsigned_accepted') return true;",
      },
    ],
    simulation: { fromSeed: 16 },
  },
  {
    name: 'late-batches-reacquire-nothing',
    breaks: 'a batch of an older epoch takes its units in the present one (rule 13)',
    edits: [
      {
        file: 'src/orders/draft-rows.ts',
        find: 'epoch < (terms.get(saleId)?.epoch ?? 0);',
        replace: 'epoch < 0;',
      },
    ],
    simulation: { fromSeed: 1325 },
    chaos: {
      scenarios: ['R4/units_lost'],
      invariants: ['I3'],
      says: /I3 ann\/k1 was answered 2xx and ended failed\/oversold_guard/,
    },
  },
  {
    name: 'keeper-trusts-any-server',
    breaks: 'a sale that is found on another server than it was loaded on is rebuilt there, and sells again (rule 11)',
    edits: [
      {
        file: 'lua/bucket-status-1.lua',
        find: 'sale[3] == own_run and 1 or 0 }',
        replace: '1 }',
      },
    ],
    chaos: {
      scenarios: ['R1'],
      invariants: [],
      says: /the same programs sell again/,
    },
  },
  {
    name: 'resolve-leaves-no-marker',
    breaks: 'a batch that was decided aborted stays so (rule 1)',
    edits: [
      {
        file: 'lua/resolve-2.lua',
        find: "redis.call('SET', KEYS[1], 'aborted', 'PX', ARGV[2])\nreturn 'aborted'",
        replace: "return 'aborted'",
      },
      {
        file: 'test/helpers/memory/memory-stock-store.ts',
        find: '    this.#abort(bucket, ref);\n',
        replace: '',
      },
    ],
    simulation: { fromSeed: 27 },
    chaos: {
      scenarios: ['T2'],
      invariants: ['I4', 'I8'],
      says: /the check-back has aborted the batch/,
    },
  },
  {
    name: 'late-deduct-passes-the-aborted-marker',
    breaks: 'the first writer of a marker wins: a deduct that comes after the check-back takes nothing (rule 1)',
    edits: [
      {
        file: 'lua/deduct-6.lua',
        find: "if kind then return { kind == 'deducted'",
        replace: "if kind and kind ~= 'aborted' then return { kind == 'deducted'",
      },
    ],
    chaos: {
      scenarios: ['T13/stall'],
      invariants: ['I8'],
      says: /the marker of .*, which never changes: expected "aborted", found "deducted"/,
    },
  },
  {
    name: 'marker-is-read-after-the-stock',
    breaks: 'after a lost reply of deduct the marker is read, and it counts before the stock (rules 1 and 2)',
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
    chaos: {
      scenarios: ['T8'],
      invariants: ['I3', 'I8'],
      says: /I3 ann\/k1 .* has no row/,
    },
  },
  {
    name: 'check-back-rolls-back-on-a-fault',
    breaks: 'no answer while finding out is no rollback (rule 2)',
    edits: [
      {
        file: 'src/rocketmq/checker.ts',
        find: "outage.failed(error, named);\n      answer = 'no_answer';",
        replace: "outage.failed(error, named);\n      answer = 'rollback';",
      },
    ],
    chaos: {
      scenarios: ['T10/throws'],
      invariants: ['I3', 'I4'],
      says: /I3 .* has no row/,
    },
  },
  {
    name: 'deduct-forgets-what-a-buyer-has',
    breaks: 'the limit is checked when units are taken, not only by precheck',
    edits: [
      {
        file: 'lua/deduct-6.lua',
        find: 'elseif total > limit then',
        replace: 'elseif quantity > limit then',
      },
      {
        file: 'test/helpers/memory/memory-stock-store.ts',
        find: 'judgePurchases(bucket, batch.purchases,',
        replace:
          'judgePurchases(Object.assign(bucket.copy(), { sale: { ...sale, limitPerBuyer: 100 } }), batch.purchases,',
      },
    ],
    simulation: { fromSeed: 642 },
    chaos: {
      scenarios: ['G4'],
      invariants: ['I2', 'I3'],
      says: /two keys of the late buyer: .* found \["accepted","accepted"\]/,
    },
  },
  {
    name: 'limit-counts-one-purchase',
    breaks: 'the limit counts all units of a buyer, in Redis and in the batch',
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
    chaos: {
      scenarios: ['G2'],
      invariants: ['I2'],
      says: /I2 buyer lim has 4 live units/,
    },
  },
  {
    name: 'the-last-unit-is-not-sold',
    breaks: 'no buyer gets sold_out while units for them are left',
    edits: [
      {
        file: 'lua/precheck-4.lua',
        find: 'elseif available < quantity then',
        replace: 'elseif available <= quantity then',
      },
    ],
    chaos: {
      scenarios: ['G1'],
      invariants: ['I7'],
      says: /I7 .* got sold_out, and 1 units are left/,
    },
  },
  {
    name: 'last-guard-forgets-the-stock',
    breaks: 'MySQL sells no unit beyond the stock, whatever Redis accepted (rule 6)',
    edits: [
      {
        file: 'src/mysql/write-orders.ts',
        find: 'AND epoch = ? AND sold + ? <= stock',
        replace: 'AND epoch = ? AND sold + ? >= 0',
      },
    ],
    chaos: {
      scenarios: ['D6'],
      invariants: ['I1'],
      says: /I1 sold \d+ of \d+/,
    },
  },
  {
    name: 'rows-found-are-counted-again',
    breaks: 'rows that were there before are not counted again (rule 6)',
    edits: [
      {
        file: 'src/mysql/insert-orders.ts',
        find: 'const INSERT_LIVE = `INSERT INTO orders',
        replace: 'const INSERT_LIVE = `INSERT IGNORE INTO orders',
      },
      {
        // otherwise this assertion would end the worker first
        file: 'src/mysql/insert-orders.ts',
        find: '  assert(written === orders.length, `${written} rows were written for ${orders.length} purchases`);\n',
        replace: '  assert(written >= 0, `${written} rows`);\n',
      },
      {
        file: 'test/helpers/memory/memory-repositories.ts',
        find: '    if (taken !== null) return { outcome: taken };\n',
        replace:
          "    if (taken === 'row_exists') for (const sale of this.#sales.values()) this.putSale({ ...sale, sold: sale.sold + 1 });\n    if (taken !== null) return { outcome: taken };\n",
      },
    ],
    simulation: { fromSeed: 15 },
    chaos: {
      scenarios: ['M5'],
      invariants: ['I1'],
      says: /I1 the count of sold units is 50, but live orders hold 40 units/,
    },
  },
  {
    name: 'ack-before-commit',
    breaks: 'rows first, then Redis, then the ack (rule 8)',
    edits: [
      {
        file: 'src/orders/handle-deliveries.ts',
        find: '  const results = await asStep(spansOf(deliveries), tracing, WRITE_ORDERS, record);',
        replace:
          '  await Promise.all(deliveries.map(({ delivery }) => delivery.ack()));\n' +
          '  const results = await asStep(spansOf(deliveries), tracing, WRITE_ORDERS, record);',
      },
    ],
    chaos: {
      scenarios: ['M9'],
      invariants: ['I3'],
      says: /I3 .* has no row/,
    },
  },
  {
    name: 'mark-recorded-moves-what-was-released',
    breaks: 'mark-recorded changes what its batch holds, and nothing else (rule 7)',
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
      {
        file: 'test/helpers/memory/memory-redis.ts',
        find: "if (entry?.state !== 'held' || entry.batchId !== batch.batchId) continue;",
        replace: "if (entry === undefined || (entry.state === 'held' && entry.batchId !== batch.batchId)) continue;",
      },
    ],
    simulation: { fromSeed: 38 },
    chaos: {
      scenarios: ['C6'],
      invariants: ['I5', 'I8'],
      says: /I5 .* is cancelled in MySQL and ordered in Redis/,
    },
  },
  {
    name: 'release-gives-twice',
    breaks: 'units of a request go back once (rule 7)',
    edits: [
      {
        file: 'lua/release-4.lua',
        find: "local ours = state == 'ordered' or",
        replace: "local ours = state ~= 'held' or",
      },
      {
        file: 'test/helpers/memory/memory-redis.ts',
        find: "    if (!entry || entry.state === 'released') return 'nothing';",
        replace:
          "    if (entry?.state === 'released' && withUnits) bucket.unitsLeft += entry.quantity;\n    if (!entry || entry.state === 'released') return 'nothing';",
      },
    ],
    simulation: { fromSeed: 38 },
    chaos: {
      scenarios: ['C3/release'],
      invariants: ['I4', 'I5'],
      says: /I4 units left differ by -3 between Redis and MySQL/,
    },
  },
  {
    name: 'expiry-lets-go-of-its-locks',
    breaks: 'the choice of the orders that expire and the outbox rows of their units are one transaction (rule 7)',
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
    chaos: {
      scenarios: ['C4'],
      invariants: ['I1', 'I5'],
      says: /I5 .* is paid in MySQL and released in Redis/,
    },
  },
  {
    name: 'expiry-trusts-the-clock-of-mysql',
    breaks: 'no order ends before its deadline, whatever the clock of MySQL says',
    edits: [
      {
        file: 'src/orders/clock-watch.ts',
        find: 'if (problem !== null) throw new OperationalError(',
        replace: "if (problem === 'never') throw new OperationalError(",
      },
      {
        file: 'test/helpers/memory/memory-order-transitions.ts',
        find: 'Number(expiresAtMs) <= this.#clock.nowMs()',
        replace: 'Number(expiresAtMs) <= this.#repositories.clock.nowMs()',
      },
    ],
    simulation: { fromSeed: 251 },
  },
  {
    name: 'leases-of-the-future-are-believed',
    breaks: 'a clock of MySQL that is set back locks nobody out',
    edits: [
      {
        file: 'test/helpers/memory/wait-over.ts',
        find: 'untilMs <= nowMs || untilMs > nowMs + longestMs + WAIT_SLACK_MS',
        replace: 'untilMs <= nowMs',
      },
    ],
    simulation: { fromSeed: 3 },
  },
  {
    name: 'deadlines-count-from-the-clock-of-mysql',
    breaks: 'an order that is written while the clock of MySQL is behind has its whole time to be paid',
    edits: [
      {
        file: 'test/helpers/memory/memory-repositories.ts',
        find: 'Math.max(createdAtMs, mintedAtMs(orderId)) + windowOf',
        replace: 'createdAtMs + windowOf',
      },
    ],
    simulation: { fromSeed: 155 },
  },
  {
    name: 'pay-checks-no-state',
    breaks: 'an order that has ended cannot be paid: its state is read under a lock, and the statement names it',
    edits: [
      {
        file: 'src/mysql/order-transitions.ts',
        find: 'if (!isUnpaid(order.state)) return order',
        replace: "if (order.state === 'paid') return order",
      },
      {
        file: 'src/mysql/move-orders.ts',
        find: "locked.whereIn('state', statesBefore(move)).update(",
        replace: 'locked.update(',
      },
    ],
    chaos: {
      scenarios: ['C4'],
      invariants: ['I6', 'I1'],
      says: /I6 order \d+ was paid and cancelled|pay and cancel of \d+: expected \[200,409\], found \[200,200\]/,
    },
  },
  {
    name: 'check-back-rolls-back-on-doubt',
    breaks: 'no answer while finding out is no rollback (rule 2)',
    edits: [
      {
        file: 'src/purchase/check-back.ts',
        find: "case 'outcome_unknown':\n        return 'no_answer';",
        replace: "case 'outcome_unknown':\n        return 'rollback';",
      },
    ],
    simulation: { fromSeed: 60 },
  },
  {
    name: 'check-back-commits-on-doubt',
    breaks: 'no answer while finding out is no commit (rule 2)',
    edits: [
      {
        file: 'src/purchase/check-back.ts',
        find: "case 'outcome_unknown':\n        return 'no_answer';",
        replace: "case 'outcome_unknown':\n        return 'commit';",
      },
    ],
    simulation: { fromSeed: 60 },
  },
  {
    name: 'lost-reply-is-a-no',
    breaks: 'an unknown outcome is no refusal: nothing is refused after a time-out (rules 2 and 3)',
    edits: [
      {
        file: 'src/purchase/place-batch.ts',
        find: 'the marker will answer\n      deliverAll(unknown);',
        replace: "the marker will answer\n      deliverAll({ outcome: 'sold_out' });",
      },
    ],
    simulation: { fromSeed: 844 },
  },
  {
    name: 'yes-before-deduct',
    breaks: 'every 202 means that units are held (rule 3)',
    edits: [
      {
        file: 'src/purchase/place-batch.ts',
        find: '  const half = await ports.channel.sendHalf(batch);\n',
        replace:
          "  deliverAll({ outcome: 'accepted', batchId });\n  deliver = () => undefined;\n  const half = await ports.channel.sendHalf(batch);\n",
      },
    ],
    simulation: { fromSeed: 2 },
  },
  {
    name: 'survivors-go-twice',
    breaks: 'a survivor of a refused batch goes again once (rule 4)',
    edits: [
      {
        file: 'src/purchase/place-batch.ts',
        find: "    if (result.outcome !== 'sold_out') deliver(index, result);\n",
        replace:
          "    if (result.outcome === 'again') deliver(index, result);\n" +
          "    if (result.outcome !== 'sold_out') deliver(index, result);\n",
      },
    ],
    simulation: { fromSeed: 240 },
  },
  {
    name: 'a-refused-batch-goes-again-unchanged',
    breaks: 'a batch that Redis refuses never goes again unchanged',
    edits: [
      {
        file: 'src/purchase/place-batch.ts',
        find: 'const middle = Math.ceil(purchases.length / 2);',
        replace:
          "const middle = purchases.length;\n  for (const place of purchases.keys()) deliver(place, AGAIN);\n  if (middle > 0) return 'aborted';",
      },
    ],
    simulation: { fromSeed: 64 },
  },
  {
    name: 'a-batch-is-refused-with-its-poison',
    breaks: 'a purchase that Redis refuses fails alone',
    edits: [
      {
        file: 'src/purchase/place-batch.ts',
        find: '    deliver(0, REFUSED_BY_STORE);\n',
        replace: '    for (const place of purchases.keys()) deliver(place, REFUSED_BY_STORE);\n',
      },
      {
        file: 'src/purchase/place-batch.ts',
        find: '  if (purchases.length === 1) {\n',
        replace: '  if (purchases.length >= 1) {\n',
      },
    ],
    simulation: { fromSeed: 64 },
  },
  {
    name: 'a-failed-script-is-a-no',
    breaks:
      'after the script has failed the marker is read, or written, before the half message is rolled back (rules 1 and 2)',
    edits: [
      {
        file: 'src/purchase/place-batch.ts',
        find: "if (verdict.outcome !== 'outcome_unknown' && verdict.outcome !== 'errored') return verdict;",
        replace: "if (verdict.outcome !== 'outcome_unknown') return verdict;",
      },
    ],
    simulation: { fromSeed: 8 },
  },
  {
    name: 'deduct-forgets-the-stock',
    breaks: 'a batch that does not fit takes nothing',
    edits: [
      {
        file: 'test/helpers/memory/memory-stock-store.ts',
        find: 'judgePurchases(bucket, batch.purchases,',
        replace: 'judgePurchases(Object.assign(bucket.copy(), { unitsLeft: bucket.unitsLeft + 100 }), batch.purchases,',
      },
      {
        file: 'test/helpers/memory/memory-stock-store.ts',
        find: 'bucket.unitsLeft = unitsLeft;',
        replace: 'bucket.unitsLeft = unitsLeft - 100;',
      },
    ],
    simulation: { fromSeed: 69 },
  },
  {
    name: 'mark-recorded-and-ack-before-commit',
    breaks: 'rows first, then Redis, then the ack (rule 8)',
    edits: [
      {
        file: 'src/orders/handle-deliveries.ts',
        find: '  const results = await asStep(spansOf(deliveries), tracing, WRITE_ORDERS, record);\n',
        replace:
          '  await ports.store.markRecorded(batches.map((batch) => ({ batch, orders: [] }))).catch(() => undefined);\n  await Promise.all(deliveries.map(({ delivery }) => delivery.ack()));\n  const results = await asStep(spansOf(deliveries), tracing, WRITE_ORDERS, record);\n',
      },
    ],
    simulation: { fromSeed: 28 },
  },
  {
    name: 'nothing-is-re-driven',
    breaks: 'a batch that stays pending is published again (rule 8)',
    edits: [
      {
        file: 'src/recovery/redrive.ts',
        find: 'await inSpan(span, () => channel.publish(batch));',
        replace: 'await inSpan(span, () => Promise.resolve());',
      },
    ],
    simulation: { fromSeed: 14 },
  },
  {
    name: 'outbox-done-before-publish',
    breaks: 'a row of the outbox is marked done after it was published',
    edits: [
      {
        file: 'src/orders/relay-outbox.ts',
        find: '          if (rows.length > 0) errors.push(...(await relay.handleRows(rows)));',
        replace:
          '          await ports.outbox.markDone(rows.map(({ outboxId }) => outboxId));\n          if (rows.length > 0) errors.push(...(await relay.handleRows(rows)));',
      },
    ],
    simulation: { fromSeed: 16 },
  },
  {
    name: 'cancel-writes-no-release',
    breaks: 'the end of an order and the release of its units are one transaction (rule 7)',
    edits: [
      {
        file: 'test/helpers/memory/memory-order-transitions.ts',
        find: "    this.#repositories.outbox.add('release', key, releases);",
        replace: "    if (state !== 'cancelled') this.#repositories.outbox.add('release', key, releases);",
      },
    ],
    simulation: { fromSeed: 4 },
  },
  {
    name: 'status-asks-mysql-only',
    breaks: 'a buyer with a 202 is never answered that there is no such purchase',
    edits: [
      {
        file: 'src/purchase/read-purchase.ts',
        find: 'await store.findRequest(home, userId, requestId);',
        replace: 'null;',
      },
    ],
    simulation: { fromSeed: 1 },
  },
  {
    name: 'flag-knows-no-winners',
    breaks: 'a buyer whose purchase was accepted is never answered sold_out',
    edits: [
      {
        file: 'src/purchase/sold-out-flags.ts',
        find: 'return !flag.buyers.has(userId);',
        replace: 'return true;',
      },
    ],
    simulation: { fromSeed: 6597 },
  },
  {
    name: 'check-back-rolls-back-what-is-outlived',
    breaks: 'a batch of an older epoch without a marker may have been deducted: it is committed (rule 13)',
    edits: [
      {
        file: 'src/purchase/check-back.ts',
        find: "      case 'outlived': // the marker may be lost, so a buyer may have got a 202: the worker reacquires the units\n",
        replace: '',
      },
      {
        file: 'src/purchase/check-back.ts',
        find: "      case 'aborted':\n",
        replace: "      case 'aborted':\n      case 'outlived':\n",
      },
    ],
    simulation: { fromSeed: 627 },
  },
  {
    name: 'repair-forgets-what-is-held',
    breaks: 'a request that is held and has no row keeps its units (rule 12)',
    edits: [
      {
        file: 'test/helpers/memory/memory-repair-store.ts',
        find: 'if (withUnits.length > 0) yield withUnits;',
        replace: 'yield [];',
      },
    ],
    simulation: { fromSeed: 103 },
  },
  {
    name: 'repair-is-not-locked',
    breaks: 'nothing is recorded or released while a sale is rebuilt (rule 12)',
    edits: [
      {
        file: 'test/helpers/memory/memory-redis.ts',
        find: "return state === 'repair' || this.#isInRepair(present) ? null : this.#release(present);",
        replace: 'return this.#release(present);',
      },
    ],
    simulation: { fromSeed: 249 },
  },
  {
    name: 'transfer-in-without-its-number',
    breaks: 'a transfer that has arrived brings nothing a second time',
    edits: [
      {
        file: 'test/helpers/memory/memory-transfer-store.ts',
        find: 'if (seq <= (bucket.incoming.get(from) ?? 0))',
        replace: 'if (seq < 0)',
      },
    ],
    simulation: { fromSeed: 362 },
  },
  {
    name: 'transfer-ends-before-it-arrives',
    breaks: 'a bucket forgets units that it gave away only when they have arrived',
    edits: [
      {
        file: 'test/helpers/memory/memory-transfer-store.ts',
        find: '{ seq, units, isOpen: true,',
        replace: '{ seq, units, isOpen: false,',
      },
    ],
    simulation: { fromSeed: 6 },
  },
  {
    name: 'sold-out-after-one-bucket',
    breaks: 'sold_out is the answer when all buckets together have too few',
    edits: [
      {
        file: 'src/purchase/place-batch.ts',
        find: 'else if (isOneOfMany) emptied',
        replace: 'else if (isOneOfMany && index < 0) emptied',
      },
    ],
    simulation: { fromSeed: 135 },
  },
  {
    name: 'units-on-their-way-are-forgotten',
    breaks: 'units that a dead process left between two buckets reach one of them',
    edits: [
      {
        file: 'test/helpers/memory/memory-transfer-store.ts',
        find: '...bucket.transfers(this.#server.nowMs) };',
        replace: '...bucket.transfers(this.#server.nowMs), outgoing: [] };',
      },
    ],
    simulation: { fromSeed: 157 },
  },
  {
    name: 'old-snapshots-are-believed',
    breaks: 'an api that knows another number of buckets takes nothing (rule 11)',
    edits: [
      {
        file: 'test/helpers/memory/memory-stock-store.ts',
        find: 'this.isSure(sale) && !isResharded(sale, ref) ? closedBy',
        replace: 'this.isSure(sale) ? closedBy',
      },
    ],
    simulation: { fromSeed: 19 },
  },
  {
    name: 'mark-recorded-knows-one-bucket',
    breaks: 'a batch is recorded in every bucket that its buyers are in now (rule 8)',
    edits: [
      {
        file: 'test/helpers/memory/memory-redis.ts',
        find: '      for (const ref of this.#refsOf(batch)) {\n        if',
        replace: '      for (const ref of [{ saleId: batch.saleId, bucket: batch.bucket }]) {\n        if',
      },
    ],
    simulation: { fromSeed: 14 },
  },
];
