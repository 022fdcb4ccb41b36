import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chooseRows, nameOf, NO_FIGURES, type Row, type RowResult } from '../../chaos/scenario.js';
import type { StackHands } from '../../chaos/harness/stack-controls.js';
import { createRandom } from '../../chaos/random.js';
import { cellsOf, HEADER, reportPage, summarize, totalLine } from '../../chaos/report.js';
import { ROWS } from '../../chaos/scenarios/list.js';
import { Matrix, Turns } from '../../chaos/run-suite.js';
import type { Sale } from '../../../src/core/sale.js';
import { NO_TRANSFERS } from '../../../src/core/unit-transfer.js';

const rowOf = (parts: Partial<Row>): Row => ({
  ...{ id: 'T1', title: 'something breaks', fast: true, alone: false, books: 'none' },
  run: () => Promise.resolve(),
  ...parts,
});
const resultOf = (parts: Partial<RowResult>): RowResult => ({
  ...{ row: 'T1', ids: ['T1'], title: 'something breaks', seed: 1, outcome: 'green', reason: null },
  ...{ figures: NO_FIGURES, recoveryMs: 1500, tookMs: 10, bites: [], findings: [] },
  ...parts,
});

describe('chaos: the matrix', () => {
  let dir: string;
  before(() => (dir = mkdtempSync(join(tmpdir(), 'seckill-chaos-'))));
  after(() => rmSync(dir, { recursive: true, force: true }));

  const matrixOf = (signal = new AbortController().signal): Matrix =>
    new Matrix({ stack: { servers: { dir } } as StackHands, env: {}, jobs: 2, signal });

  it('names every row once', () => {
    const names = ROWS.map(nameOf);
    expect(new Set(names).size).to.equal(names.length);
  });

  it('fails a row that proved nothing, or never said that its fault is over', async () => {
    const [silent] = await matrixOf().run(new Turns([rowOf({})], [1]));
    expect(silent).to.include({ outcome: 'red', reason: 'the fault did not bite: the row proved nothing' });
    const endless = rowOf({ run: (arena) => arena.bite('it broke', () => true) });
    const [open] = await matrixOf().run(new Turns([endless], [1]));
    expect(open).to.include({ outcome: 'red', reason: 'the row never said that its fault is over' });
  });

  it('fails a row that has no sale and does not say so', async () => {
    const { books, ...parts } = rowOf({
      async run(arena) {
        await arena.bite('it broke', () => true);
        arena.faultEnded();
      },
    });
    expect(books).to.equal('none');
    const [bare] = await matrixOf().run(new Turns([parts], [1]));
    expect(bare?.reason).to.equal('the row has no sale: nothing was held against the invariants');
  });

  it('is green when the fault bit and is over; red with the sentence of what was thrown', async () => {
    const whole = rowOf({
      async run(arena) {
        await arena.bite('it broke', () => true);
        arena.faultEnded();
      },
    });
    const [green] = await matrixOf().run(new Turns([whole], [1]));
    expect(green).to.deep.include({ outcome: 'green', reason: null, bites: ['it broke'] });
    const [red] = await matrixOf().run(new Turns([rowOf({ run: () => Promise.reject(new Error('no')) })], [1]));
    expect(red).to.include({ outcome: 'red', reason: 'no' });
    const [late] = await matrixOf().run(
      new Turns([rowOf({ timeoutMs: 10, run: () => new Promise(() => undefined) })], [1]),
    );
    expect(late).to.include({ outcome: 'red', reason: 'it was not over after 0.01 s' });
  });

  it('undoes what a row did to the machine, the last thing first, also when the row or an undo failed', async () => {
    const undone: string[] = [];
    const run: Row['run'] = (arena) => {
      arena.atEnd(() => void undone.push('first'));
      arena.atEnd(() => Promise.reject(new Error('cannot be undone')));
      arena.atEnd(() => void undone.push('last'));
      return Promise.reject(new Error('no'));
    };
    const [red] = await matrixOf().run(new Turns([rowOf({ run })], [1]));
    expect(red).to.include({ outcome: 'red', reason: 'no' });
    expect(undone).to.deep.equal(['last', 'first']);
  });

  const sale = { saleId: '7', stock: 10, sold: 0, buckets: 1, limitPerBuyer: 1 } as Sale;
  const snapshot = { unitsLeft: 9, requests: new Map(), buyers: new Map(), pending: [], transfers: NO_TRANSFERS };
  const audit = {
    store: {
      snapshot: () => Promise.resolve(snapshot),
      pendingCount: () => Promise.resolve(0),
      transfers: async () => NO_TRANSFERS,
    },
    repository: {
      findSale: () => Promise.resolve(sale),
      undoneReleases: () => Promise.resolve(0),
      orders: async function* () {
        yield [];
      },
    },
  };
  const { signal } = new AbortController();
  const fails = rowOf({
    run(arena) {
      arena.adopt(sale);
      return Promise.reject(new Error('no'));
    },
  });

  it('reads the books of a row once every server runs again; none when they cannot be read', async () => {
    let isMended = false;
    const findSale = () => (isMended ? Promise.resolve(sale) : Promise.reject(new Error('MySQL is down')));
    const servers = { dir, server: () => ({ kill: () => true }), up: async () => void (isMended = true) };
    const down = { ...audit, repository: { ...audit.repository, findSale } };
    const redis = { redis: { ping: async () => 'PONG' } };
    const mysql = { query: async () => undefined };
    const stack = { servers, audit: down, redis, mysql } as unknown as StackHands;
    const matrix = new Matrix({ stack, env: {}, jobs: 1, signal });
    const [unread] = await matrix.run(new Turns([fails], [1])); // it runs beside others and breaks no server
    expect(unread).to.include({ outcome: 'red', reason: 'no', figures: null });
    const [read] = await matrix.run(new Turns([{ ...fails, alone: true }], [1]));
    expect(read).to.deep.include({ outcome: 'red', reason: 'no', figures: NO_FIGURES });
  });

  it('says of a red row what its books say besides', async () => {
    const stack = { servers: { dir }, audit } as unknown as StackHands;
    const [red] = await new Matrix({ stack, env: {}, jobs: 1, signal }).run(new Turns([fails], [1]));
    expect(red).to.deep.include({ outcome: 'red', reason: 'no', findings: ['I4 1 units are in neither book'] });
  });

  it('hides the sales of a red row from later keepers, and leaves what Redis has of them to a person', async () => {
    const queries: [sql: string, ids: readonly string[]][] = [];
    const mysql = { query: async (sql: string, [ids]: [readonly string[]]) => void queries.push([sql, ids]) };
    const unlinked: string[] = [];
    const unlink = async (...keys: string[]): Promise<void> => void unlinked.push(...keys);
    const redis = { redis: { unlink, ping: async () => 'PONG' } };
    const servers = { dir, server: () => ({ kill: () => true }), up: async () => undefined };
    const stack = { servers, audit, mysql, redis } as unknown as StackHands;
    const matrix = new Matrix({ stack, env: {}, jobs: 1, signal });
    await matrix.run(new Turns([{ ...fails, alone: true }, rowOf({ id: 'T2', alone: true })], [1]));
    expect(queries).to.deep.equal([["UPDATE sales SET state = 'draft' WHERE id IN (?)", [sale.saleId]]]);
    expect(unlinked).to.deep.equal([]);
  });

  it('runs the programs of another build when it is given one', async () => {
    const main = join(dir, 'another-main.mjs');
    writeFileSync(
      main,
      'console.log(`another ${process.argv[2]}`); process.send({ facts: {} }); setInterval(() => 0, 9);',
    );
    const row = rowOf({
      async run(arena) {
        const keeper = await arena.start('keeper');
        await arena.bite('it is another', () => keeper.log.includes('another keeper'));
        arena.faultEnded();
      },
    });
    const { signal } = new AbortController();
    const stack = { servers: { dir } } as StackHands;
    const [result] = await new Matrix({ stack, env: process.env, main, jobs: 1, signal }).run(new Turns([row], [1]));
    expect(result?.reason).to.equal(null);
  });

  it('skips a row with its reason and does not run it', async () => {
    const run = (): Promise<void> => Promise.reject(new Error('it ran'));
    const [skipped] = await matrixOf().run(new Turns([rowOf({ skip: () => 'it needs two disks', run })], [1]));
    expect(skipped).to.include({ outcome: 'skipped', reason: 'it needs two disks' });
  });

  it('runs at most so many rows beside each other, and gives each its seed', async () => {
    let [running, most] = [0, 0];
    const seen: string[] = [];
    const rows = ['T1', 'T2', 'T3', 'T4', 'T5'].map((id) =>
      rowOf({
        id,
        async run(arena) {
          most = Math.max(most, ++running);
          seen.push(`${id} ${arena.seed}`);
          await new Promise((resolve) => setImmediate(resolve));
          running--;
        },
      }),
    );
    await matrixOf().run(new Turns(rows, [7, 8]));
    expect(most).to.equal(2);
    expect(seen.sort()).to.deep.equal(rows.flatMap(({ id }) => [`${id} 7`, `${id} 8`]).sort());
  });

  it('shares its rows with other stacks: each is run once, and those that must be alone are so on their stack', async () => {
    const seen: string[] = [];
    let [running, most] = [0, 0];
    const rows = ['R1', 'R2', 'R3', 'R4', 'R5'].map((id) =>
      rowOf({
        ...{ id, alone: true },
        async run() {
          most = Math.max(most, ++running);
          seen.push(id);
          await new Promise((resolve) => setImmediate(resolve));
          running--;
        },
      }),
    );
    const turns = new Turns(rows, [1]);
    const results = await Promise.all([matrixOf().run(turns), matrixOf().run(turns)]);
    expect(seen.sort()).to.deep.equal(rows.map(({ id }) => id));
    expect([results.flat().length, most]).to.deep.equal([5, 2]);
  });

  it('begins no further row after an abort', async () => {
    const aborting = new AbortController();
    const first = rowOf({
      run() {
        aborting.abort(new Error('stop'));
        return new Promise(() => undefined);
      },
    });
    const results = await matrixOf(aborting.signal).run(new Turns([first, first, first, first], [1]));
    expect(results.map(({ reason }) => reason)).to.deep.equal(['stop']);
  });

  it('takes ids, names and groups, in small letters too, and tells what nobody knows', () => {
    const rows = [
      rowOf({}),
      rowOf({ id: 'T3', variant: 'a' }),
      rowOf({ id: 'T3', variant: 'b' }),
      rowOf({ id: 'G6', also: ['L2'] }),
    ];
    const names = (...wanted: string[]): string[] => chooseRows(rows, wanted).chosen.map(nameOf);
    expect(names()).to.have.length(4);
    expect(names('t3')).to.deep.equal(['T3/a', 'T3/b']);
    expect(names('T3/b', 'T1')).to.deep.equal(['T1', 'T3/b']);
    expect(names('L2')).to.deep.equal(['G6']);
    expect(names('T')).to.deep.equal(['T1', 'T3/a', 'T3/b']);
    expect(chooseRows(rows, ['T3', 'T9', 'T3/c']).unknown).to.deep.equal(['T9', 'T3/c']);
  });
});

describe('chaos: choices', () => {
  it('are the same for the same seed and row, and others for another', () => {
    const choices = (text: string): number[] => {
      const random = createRandom(text);
      return Array.from({ length: 20 }, () => random.whole(0, 1000));
    };
    expect(choices('7 T3')).to.deep.equal(choices('7 T3'));
    expect(choices('7 T3')).not.to.deep.equal(choices('8 T3'));
  });

  it('stay within their bounds and reach them', () => {
    const random = createRandom('1');
    const seen = new Set(Array.from({ length: 200 }, () => random.whole(1, 3)));
    expect([...seen].sort()).to.deep.equal([1, 2, 3]);
    expect(random.shuffled([1, 2, 3, 4]).sort()).to.deep.equal([1, 2, 3, 4]);
    expect(() => random.pick([])).to.throw(RangeError);
  });
});

describe('chaos: the report', () => {
  const figures = { ...NO_FIGURES, requests: 1200, accepted: 5, orders: 5 };
  const results = [
    resultOf({ figures, seed: 1 }),
    resultOf({ figures, seed: 2, recoveryMs: 2500 }),
    resultOf({ row: 'M3', outcome: 'skipped', reason: 'it needs a small volume', recoveryMs: null }),
  ];

  it('sums the seeds of a row and shows its slowest recovery', () => {
    const [first] = summarize(['T1', 'M3'], results);
    expect(cellsOf(first!)).to.deep.equal(['T1', '2', '2,400', '10', '10', '0', '0', '0', '0', '2.5']);
    expect(HEADER).to.have.length(10);
  });

  it('ends on one line, with what is red or skipped', () => {
    expect(totalLine(summarize(['T1', 'M3'], results), 2)).to.equal(
      '0 oversold, 0 duplicate, 0 lost in 1 faults × 2 seeds; 1 skipped',
    );
    const lost = resultOf({ outcome: 'red', reason: 'I3', figures: { ...NO_FIGURES, lost: 2 }, recoveryMs: null });
    expect(totalLine(summarize(['T1'], [lost]), 1)).to.equal(
      '0 oversold, 0 duplicate, 2 lost in 1 faults × 1 seed; 1 RED',
    );
  });

  it('tells no counts of books that nobody could read, and says so in the end', () => {
    const unread = resultOf({ outcome: 'red', reason: 'no connection', figures: null, recoveryMs: null });
    const [row] = summarize(['T1'], [unread, resultOf({ figures, seed: 2 })]);
    expect(cellsOf(row!)).to.deep.equal(['T1 RED', '2', ...Array.from({ length: 8 }, () => '–')]);
    expect(totalLine([row!], 2)).to.equal(
      '0 oversold, 0 duplicate, 0 lost in 1 faults × 2 seeds; 1 RED; books of 1 row could not be read',
    );
  });

  it('is a page with versions, table, faults and the reason of what was skipped', () => {
    const page = reportPage({
      summaries: summarize(['T1', 'M3'], results),
      ...{ seeds: [1, 2], date: '2026-01-01', tookMs: 61_000 },
      facts: { versions: { Redis: '6.2' }, machine: '2 cores' },
    });
    expect(page).to.contain('2026-01-01, 61 s in all. Redis 6.2. 2 cores.');
    expect(page).to.contain('| T1 | 2 | 2,400 | 10 | 10 | 0 | 0 | 0 | 0 | 2.5 |');
    expect(page).to.contain('- **M3**: it needs a small volume');
    expect(page).not.to.contain('## Red');
  });
});
