import type { OrderState } from '../../../src/core/order.js';
import { createOrderStates } from '../../../src/mysql/order-repository.js';
import type { Arena } from '../arena.js';
import { EventEar } from '../harness/event-ear.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { recordBatch } from '../harness/recorded-batch.js';
import { undoneRows, workLeft } from '../harness/undone-rows.js';
import { expectAllBack, soldToUnpaid, statesOf } from '../harness/unpaid-orders.js';
import type { Row } from '../row.js';

// C: keeper, reconcile and compensation.

/** No worker runs here, so what is published again would wait for the next row. */
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };
const ENV = { ...NO_REDRIVE, KEEPER_EVERY_MS: '200', OUTBOX_EVERY_MS: '100', OUTBOX_LEASE_MS: '4000' };
/** The lease of a row (4 s) or the invisible time of a message (30 s) of a keeper that died, and what comes after. */
const AGAIN_WITHIN_MS = 60_000;
const SIZE = 3;

const MANY_ORDERS = 10_000;
const BACK_WITHIN_MS = 30_000;
/** All are due when the keeper starts, so that it has them in its hands when it dies. */
const PAYMENT_WINDOW_MS = 1;

/** Lets a keeper run into the point. */
async function killKeeperAt(arena: Arena, point: string): Promise<void> {
  const keeper = await arena.start('keeper', { env: ENV, failPoint: point });
  await arena.diedAt(keeper, point, AGAIN_WITHIN_MS);
}

/** A keeper with a fail point would else die of the work that other rows have left. */
async function finishOthers(arena: Arena): Promise<void> {
  if ((await workLeft(arena.stack)) === 0) return;
  const keeper = await arena.start('keeper', { env: { ...ENV, EXPIRE_SWEEP_EVERY_MS: '200' } });
  await arena.until('what other rows left is done', async () => (await workLeft(arena.stack)) === 0, AGAIN_WITHIN_MS);
  await keeper.stop();
}

async function expired({ stack }: Arena, orderIds: readonly string[]): Promise<boolean> {
  const states: OrderState[] = [...(await createOrderStates(stack.mysql).statesOf(orderIds)).values()];
  return states.every((state) => state === 'expired');
}

/** A keeper that was killed may have published without marking: then it is told again, under the same id. */
async function expectOneEnd(arena: Arena, ear: EventEar, saleId: string, orderIds: readonly string[]): Promise<void> {
  const ended = (): readonly string[] => ear.ordersOf(saleId, 'order.expired');
  await arena.until('it is told', () => ended().length >= SIZE, AGAIN_WITHIN_MS);
  expectEqual([...new Set(ended())].sort(), [...orderIds].sort(), 'orders that were told as expired');
  const ids = ear.eventsOf(saleId).flatMap(({ type, eventId }) => (type === 'order.expired' ? [eventId] : []));
  expectEqual(new Set(ids).size, 1, 'ids of the event');
}

async function withEar(arena: Arena, work: (ear: EventEar) => Promise<void>): Promise<void> {
  const ear = await EventEar.open(arena.stack.env);
  try {
    await work(ear);
  } finally {
    await ear.close();
  }
}

const AFTER_PUBLISH: Row = {
  ...{ id: 'C3', variant: 'outbox_after_publish' },
  title: 'the keeper dies between publish and mark: published again under one id, with one effect',
  ...{ fast: true, alone: true },
  run: (arena) =>
    withEar(arena, async (ear) => {
      const { stack } = arena;
      await finishOthers(arena);
      const { saleId } = await arena.openSale();
      const { orderIds } = await recordBatch(stack, saleId, SIZE, 1_000);
      await killKeeperAt(arena, 'outbox_after_publish');
      expectEqual(await undoneRows(stack, 'batch_recorded', saleId), 1, 'rows that are not marked');
      const told = (): number => ear.ordersOf(saleId, 'order.created').length;
      await arena.until('it was published', () => told() === SIZE, AGAIN_WITHIN_MS);

      await arena.start('keeper', { env: ENV });
      arena.faultEnded();
      const done = async (): Promise<boolean> => (await undoneRows(stack, 'batch_recorded', saleId)) === 0;
      await arena.until('it is done', done, AGAIN_WITHIN_MS);
      const created = () => ear.eventsOf(saleId).filter(({ type }) => type === 'order.created');
      await arena.until('it was published again', () => created().length === 2, AGAIN_WITHIN_MS);
      expectEqual(new Set(created().map(({ eventId }) => eventId)).size, 1, 'ids of the event');

      await arena.until('the orders end', () => expired(arena, orderIds), AGAIN_WITHIN_MS);
      expectFields(await arena.rest(saleId), { rows: SIZE, sold: 0, unitsLeft: 10 }, 'one effect');
      await expectOneEnd(arena, ear, saleId, orderIds); // of two deadlines
    }),
};

const RELEASE: Row = {
  ...{ id: 'C3', variant: 'release' },
  title: 'keepers die after an expiry and before a release is marked: each order ends once and is released once',
  ...{ fast: true, alone: true },
  run: (arena) =>
    withEar(arena, async (ear) => {
      const { stack } = arena;
      await finishOthers(arena);
      const { saleId } = await arena.openSale();
      const { orderIds } = await recordBatch(stack, saleId, SIZE, 1_000);
      await killKeeperAt(arena, 'expire_after_commit');
      expectTrue(await expired(arena, orderIds), 'the orders ended, and the message was not acked');
      await killKeeperAt(arena, 'release_before_done');
      expectEqual(await undoneRows(stack, 'release', saleId), 1, 'releases given back and not marked');
      expectEqual((await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.unitsLeft, 10, 'units left');

      await arena.start('keeper', { env: ENV });
      arena.faultEnded();
      const done = async (): Promise<boolean> => (await undoneRows(stack, 'release', saleId)) === 0;
      await arena.until('it is done', done, AGAIN_WITHIN_MS);
      expectFields(await arena.rest(saleId), { rows: SIZE, sold: 0, unitsLeft: 10 }, 'released once');
      await expectOneEnd(arena, ear, saleId, orderIds);
    }),
};

const MANY: Row = {
  ...{ id: 'C3', variant: 'many' },
  title: `the keeper dies in the middle of expiring ${MANY_ORDERS} orders: the next one goes on, each is released once`,
  ...{ fast: true, alone: true },
  async run(arena) {
    const { stack, programs, random } = arena;
    const { sale } = await soldToUnpaid(stack, { count: MANY_ORDERS, paymentWindowMs: PAYMENT_WINDOW_MS });
    const { saleId } = sale;
    arena.adopt(sale);
    const ended = async (): Promise<number> => (await statesOf(stack, saleId)).expired ?? 0;
    const env = { ...NO_REDRIVE, KEEPER_EVERY_MS: '50', EXPIRE_SWEEP_EVERY_MS: '50' };
    const victim = arena.start('keeper', { env });
    victim.catch(() => undefined); // it is killed, perhaps before it says that it is ready
    const before = random.whole(0, 1000);
    await arena.until('some orders have ended', async () => (await ended()) > before, 60_000, 5);
    for (const program of programs.running) await program.crash();
    await victim.catch(() => undefined);
    const [some, promised] = [await ended(), await stack.audit.repository.undoneReleases(saleId)];
    expectAtLeast(some, 1, 'orders that had ended');
    await arena.bite('a keeper was killed and left work', () => some < MANY_ORDERS || promised > 0);

    const restartedMs = Date.now();
    await arena.start('keeper', { env });
    arena.faultEnded();
    await arena.until('every order has ended', async () => (await ended()) === MANY_ORDERS, BACK_WITHIN_MS);
    const all = { sold: 0, liveRows: 0, unitsLeft: MANY_ORDERS, rows: MANY_ORDERS };
    expectFields(await arena.rest(saleId), all, 'all units back');
    expectBelow(Date.now() - restartedMs, BACK_WITHIN_MS, 'ms until then');
    await expectAllBack(stack, saleId, MANY_ORDERS);
  },
};

export const RECONCILE_ROWS: readonly Row[] = [AFTER_PUBLISH, RELEASE, MANY];
