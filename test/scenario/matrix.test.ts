import { expect } from 'chai';
import { randomInt } from 'node:crypto';
import { closeConnections } from '../chaos/harness/http.js';
import { idsOf, nameOf, type Row, type RowFigures, type RowResult } from '../chaos/scenario.js';
import { ROWS } from '../chaos/scenarios/list.js';
import { Matrix, Turns } from '../chaos/run-suite.js';
import { openTestStack, type TestStack } from '../helpers/stack.js';

const OPEN_TIMEOUT_MS = 180_000;
/** A row bounds itself; this is for those that wait in their lane. */
const ROW_TIMEOUT_MS = 400_000;
const SEED = Number(process.env.SECKILL_CHAOS_SEED ?? randomInt(2 ** 31));

const titleOf = (row: Row): string => `${idsOf(row).join(' ')}${row.variant ? ` ${row.variant}` : ''}: ${row.title}`;

/** With --grep only the rows that it names are broken. */
function isWanted(row: Row): boolean {
  const at = process.argv.findIndex((arg) => arg === '--grep' || arg === '-g');
  return at === -1 || new RegExp(process.argv[at + 1] ?? '').test(`the fault matrix ${titleOf(row)}`);
}

function sentenceOf({ requests, accepted, orders, failedRows, oversold, duplicates, lost }: RowFigures): string {
  const counts = `requests ${requests}, heard yes ${accepted}, orders ${orders}, failed ${failedRows}`;
  return `${counts}, oversold ${oversold}, duplicate ${duplicates}, lost ${lost}`;
}

describe('the fault matrix', () => {
  const fast = ROWS.filter((row) => row.fast && isWanted(row));
  const [beside, alone] = [fast.filter((row) => !row.alone), fast.filter((row) => row.alone)];
  const aborting = new AbortController();
  const ended = new Map<string, (result: RowResult) => void>();
  let stack: TestStack;
  let matrix: Matrix;

  before(async function () {
    this.timeout(OPEN_TIMEOUT_MS);
    console.log(`    seed ${SEED}`);
    stack = await openTestStack();
    matrix = new Matrix({
      stack,
      env: { ...process.env, ...stack.env },
      jobs: beside.length, // they wait for the broker
      signal: aborting.signal,
      onEnd: (result) => ended.get(result.row)?.(result),
      onLogs: (text) => console.error(text),
    });
  });
  after(async function () {
    this.timeout(OPEN_TIMEOUT_MS);
    aborting.abort(new Error('the tests are over'));
    await matrix?.endShared();
    closeConnections();
    await stack?.close();
  });

  function expectGreen(context: Mocha.Context, { row, outcome, reason, figures, recoveryMs, tookMs }: RowResult): void {
    if (outcome === 'skipped') {
      console.log(`      skipped: ${reason}`);
      return context.skip();
    }
    const told = figures === null ? 'its books could not be read' : sentenceOf(figures);
    const seconds = (ms: number | null): string => ((ms ?? Number.NaN) / 1000).toFixed(1);
    console.log(`      · ${told}; took ${seconds(tookMs)} s, at rest after ${seconds(recoveryMs)} s`);
    const again = `npm run chaos -- run ${row} --seed ${SEED}`;
    expect(outcome, `${reason}; again: ${again}`).to.equal('green');
  }

  describe('beside each other', () => {
    const results = new Map(
      beside.map((row) => [row, new Promise<RowResult>((resolve) => ended.set(nameOf(row), resolve))] as const),
    );
    before(() => {
      void matrix.run(new Turns(beside, [SEED]));
    });
    for (const row of beside) {
      it(titleOf(row), async function () {
        this.timeout(ROW_TIMEOUT_MS);
        expectGreen(this, (await results.get(row)) as RowResult);
      });
    }
  });

  describe('one after the other', () => {
    for (const row of alone) {
      it(titleOf(row), async function () {
        this.timeout(ROW_TIMEOUT_MS);
        expectGreen(this, await matrix.runOne(row, SEED));
      });
    }
  });
});
