import type { Arena } from '../arena.js';
import type { Buyers } from '../harness/buyers.js';
import { userIds } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import type { Program } from '../harness/programs.js';
import { markersOf, type Markers } from '../harness/stack-hands.js';
import type { Row } from '../row.js';
import { CHECK_BACK_ROWS } from './check-backs.js';
import { LOST_WORD_ROWS } from './lost-words.js';

// T: the api and the transaction between half message and commit.

const STOCK = 20;
/** The broker asks 11 to 16 s after the half message, more on a busy machine. */
const CHECK_BACK_MS = 80_000;

/** What an api left behind that was killed at a fail point. */
interface Death {
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly users: readonly string[];
  readonly unitsLeft: number;
  readonly pending: number;
  readonly markers: Markers;
}

/** Some buyers meet an api that dies at the point; from then on they ask one that lives. */
async function killAt(arena: Arena, point: string): Promise<Death> {
  const users = userIds(arena.random.whole(3, 8));
  const [{ api: survivor }, { saleId }, victim] = await Promise.all([
    arena.survivors(),
    arena.openSale({ stock: STOCK }),
    arena.start('api', { failPoint: point }),
  ]);
  let asked: Program = victim;
  const buyers = arena.buyers(saleId, () => [asked]);
  await buyers.rush(users, users.length);
  await arena.diedAt(victim, point);
  arena.faultEnded();
  asked = survivor;
  const snapshot = await arena.stack.audit.store.snapshot({ saleId, bucket: 0 });
  const { unitsLeft = Number.NaN, pending = [] } = snapshot ?? {};
  const markers = await markersOf(arena.stack, saleId);
  return { saleId, buyers, users, unitsLeft, pending: pending.length, markers };
}

/** Every buyer asks again with his key and has exactly one order at the end. */
async function expectOneOrderEach(arena: Arena, { saleId, buyers, users }: Death): Promise<void> {
  for (const again of await buyers.rush(users, users.length, { tries: 20 })) {
    expectOneOf(again?.status, [200, 202], 'the answer to the same key');
  }
  const figures = await arena.rest(saleId);
  const count = users.length;
  expectFields(figures, { rows: count, sold: count, unitsLeft: STOCK - count, failedRows: 0 }, 'one order each');
}

const nothingTaken = (death: Death): void =>
  expectFields(death, { unitsLeft: STOCK, pending: 0, markers: new Map() }, 'what the dead api left');

const DEATHS: readonly Row[] = [
  {
    id: 'T1',
    title: 'the api dies after precheck: nothing was sent and nothing taken; the retry is a first try',
    ...{ fast: true, alone: false },
    async run(arena) {
      const death = await killAt(arena, 'after_precheck');
      nothingTaken(death);
      expectEqual(death.buyers.opLog.count('unknown'), death.users.length, 'buyers who do not know');
      await expectOneOrderEach(arena, death);
    },
  },
  {
    id: 'T2',
    title: 'the api dies after the half message: the broker asks, the batch is aborted; the same key is accepted',
    ...{ fast: true, alone: false },
    async run(arena) {
      const death = await killAt(arena, 'after_half');
      nothingTaken(death);
      const aborted = async (): Promise<boolean> =>
        [...(await markersOf(arena.stack, death.saleId)).values()].includes('aborted');
      await arena.until('the check-back has aborted the batch', aborted, CHECK_BACK_MS);
      const untouched = await arena.rest(death.saleId);
      expectFields(untouched, { rows: 0, unitsLeft: STOCK }, 'nobody asked again yet');
      await expectOneOrderEach(arena, death);
    },
  },
  {
    ...{ id: 'T3', variant: 'after_deduct' },
    title: 'the api dies after deduct: the broker asks, the batch is committed; no second deduct',
    ...{ fast: true, alone: true }, // apis that die beside it would be asked in vain
    async run(arena) {
      const death = await killAt(arena, 'after_deduct');
      const { saleId, buyers, unitsLeft, markers } = death;
      expectAtLeast(death.pending, 1, 'batches deducted and not committed');
      expectOneOf('deducted', [...markers.values()], 'markers');
      expectEqual(buyers.opLog.count('ok'), 0, 'buyers who heard of it');
      const settled = async (): Promise<boolean> =>
        (await arena.stack.audit.store.pendingCount({ saleId, bucket: 0 })) === 0;
      await arena.until('the orders come without anybody asking again', settled, CHECK_BACK_MS);
      const healed = await arena.rest(saleId);
      expectFields(healed, { unitsLeft, rows: STOCK - unitsLeft }, 'no second deduct');
      await expectOneOrderEach(arena, death);
    },
  },
  {
    ...{ id: 'T3', variant: 'before_answer' },
    title: 'the api dies before the answer: what the buyers never heard is theirs all the same',
    ...{ fast: false, alone: true }, // the same
    async run(arena) {
      const death = await killAt(arena, 'before_answer');
      expectBelow(death.unitsLeft, STOCK, 'units were taken');
      expectEqual(death.buyers.opLog.count('ok'), 0, 'buyers who heard of it');
      await expectOneOrderEach(arena, death);
    },
  },
  {
    ...{ id: 'T3', variant: 'after_commit' },
    title: 'the api dies after commit: the worker records it, whether its buyers heard the answer or not',
    ...{ fast: true, alone: false },
    async run(arena) {
      const death = await killAt(arena, 'after_commit');
      expectBelow(death.unitsLeft, STOCK, 'units were taken');
      expectOneOf('deducted', [...death.markers.values()], 'markers');
      await expectOneOrderEach(arena, death);
    },
  },
];

export const TRANSACTION_ROWS: readonly Row[] = [...DEATHS, ...LOST_WORD_ROWS, ...CHECK_BACK_ROWS];
