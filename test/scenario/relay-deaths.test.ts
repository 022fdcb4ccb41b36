import { expect } from 'chai';
import type { OrderState } from '../../src/domain/order.js';
import type { OutboxKind } from '../../src/ports/outbox.js';
import { createOrderStates } from '../../src/mysql/order-states.js';
import { EventEar } from '../helpers/event-ear.js';
import { ask } from '../helpers/http-client.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../helpers/open-sale.js';
import type { Program } from '../helpers/programs.js';
import { recordBatch } from '../helpers/recorded-batch.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../helpers/until.js';

/** No worker runs here, so what is published again would wait for the next test. */
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };
const ENV = { ...NO_REDRIVE, KEEPER_EVERY_MS: '200', OUTBOX_EVERY_MS: '100', OUTBOX_LEASE_MS: '4000' };
/** The lease of a row (4 s) or the invisible time of a message (30 s) of a keeper that died, and what comes after. */
const AGAIN_WITHIN_MS = 60_000;
const SIZE = 3;

describe('the outbox when keepers and broker die', () => {
  let ear: EventEar;
  const system = useSystem(async ({ stack }) => {
    ear = await EventEar.open(stack.env);
  });
  after(() => ear?.close());
  afterEach(async () => {
    await Promise.all(system.programs.running.map((program) => program.stop()));
  });

  const undone = async (kind: OutboxKind, saleId: string): Promise<number> => {
    const [row] = await system.stack.mysql.query<{ rows: string }>(
      'SELECT COUNT(*) AS `rows` FROM outbox WHERE kind = ? AND done_at IS NULL AND payload LIKE ?',
      [kind, `%"saleId":"${saleId}"%`],
    );
    return Number(row?.rows);
  };
  const statesOf = async (orderIds: readonly string[]): Promise<OrderState[]> => [
    ...(await createOrderStates(system.stack.mysql).statesOf(orderIds)).values(),
  ];
  const expired = async (orderIds: readonly string[]): Promise<boolean> =>
    (await statesOf(orderIds)).every((state) => state === 'expired');

  /** Lets a keeper run into the point. */
  async function killAt(point: string): Promise<void> {
    const keeper = await system.programs.start('keeper', { env: { ...ENV, FAILPOINT: point } });
    expect(await keeper.ended(AGAIN_WITHIN_MS), point).to.deep.equal({ code: null, signal: 'SIGKILL' });
    expect(keeper.log).to.contain(`"failPoint":"${point}"`);
  }

  /** A keeper that was killed may have published without marking: then it is told again, under the same id. */
  function expectOneEnd(saleId: string, orderIds: readonly string[]): void {
    expect([...new Set(ear.ordersOf(saleId, 'order.expired'))].sort()).to.deep.equal([...orderIds].sort());
    const ids = ear.eventsOf(saleId).flatMap(({ type, eventId }) => (type === 'order.expired' ? [eventId] : []));
    expect(new Set(ids).size, 'one id').to.equal(1);
  }

  it('C3 outbox_after_publish: published and not marked, so published again under one id, with one effect', async () => {
    const { stack, programs } = system;
    const { saleId } = await openSale(stack, { stock: 10 });
    const { orderIds } = await recordBatch(stack, saleId, SIZE, 1_000);
    await killAt('outbox_after_publish');
    expect(await undone('batch_recorded', saleId), 'not marked').to.equal(1);
    await until('it was published', () => ear.ordersOf(saleId, 'order.created').length === SIZE, AGAIN_WITHIN_MS);

    await programs.start('keeper', { env: ENV });
    await until('it is done', async () => (await undone('batch_recorded', saleId)) === 0, AGAIN_WITHIN_MS);
    const created = () => ear.eventsOf(saleId).filter(({ type }) => type === 'order.created');
    await until('it was published again', () => created().length === 2, AGAIN_WITHIN_MS);
    expect(new Set(created().map(({ eventId }) => eventId)).size, 'one id').to.equal(1);

    await until('the orders end', () => expired(orderIds), AGAIN_WITHIN_MS);
    const figures = await expectInvariants(stack, saleId);
    expect(figures).to.include({ rows: SIZE, sold: 0, unitsLeft: 10 });
    await until('it is told', () => ear.ordersOf(saleId, 'order.expired').length >= SIZE, AGAIN_WITHIN_MS);
    expectOneEnd(saleId, orderIds); // of two deadlines
  });

  it('C3 expire_after_commit and release_before_done: each order ends once and gives its unit back once', async () => {
    const { stack, programs } = system;
    const { saleId } = await openSale(stack, { stock: 10 });
    const { orderIds } = await recordBatch(stack, saleId, SIZE, 1_000);
    await killAt('expire_after_commit');
    expect(await expired(orderIds), 'ended, and the message not acked').to.equal(true);
    await killAt('release_before_done');
    expect(await undone('release', saleId), 'given back, and not marked').to.equal(1);
    expect((await stack.audit.ledger.snapshot({ saleId, bucket: 0 }))?.unitsLeft).to.equal(10);

    await programs.start('keeper', { env: ENV });
    await until('it is done', async () => (await undone('release', saleId)) === 0, AGAIN_WITHIN_MS);
    const figures = await expectInvariants(stack, saleId);
    expect(figures).to.include({ rows: SIZE, sold: 0, unitsLeft: 10 });
    await until('it is told', () => ear.ordersOf(saleId, 'order.expired').length >= SIZE, AGAIN_WITHIN_MS);
    expectOneEnd(saleId, orderIds);
  });

  it('M1 broker down: rows wait and are counted, nothing is lost, and they go out when it is back', async () => {
    const { stack, programs } = system;
    const { saleId } = await openSale(stack, { stock: 100 });
    const keeper: Program = await programs.start('keeper', { env: ENV });
    const proxy = stack.servers.server('proxy');
    await proxy.stop({ signal: 'SIGKILL' });
    expect(proxy.pid(), 'it is gone').to.equal(null);
    const orderIds: string[] = [];
    for (let batches = 0; batches < 10; batches++) {
      orderIds.push(...(await recordBatch(stack, saleId, SIZE)).orderIds);
    }
    const metric = async (name: string): Promise<number> => {
      const { text } = await ask(`${keeper.probeUrl}/metrics`);
      return Number(new RegExp(`^${name}\\{kind="batch_recorded"[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
    };
    await until('rows are tried', async () => (await metric('seckill_outbox_retried_rows_total')) > 0, 30_000);
    await until('the alert grows', async () => (await metric('seckill_outbox_oldest_seconds')) > 3, 30_000);
    await until('all are counted', async () => (await metric('seckill_outbox_undone_rows')) >= 10, 30_000);
    expect(await undone('batch_recorded', saleId), 'they wait').to.equal(10);

    await proxy.start();
    await proxy.waitReady();
    await until('they go out', async () => (await undone('batch_recorded', saleId)) === 0, AGAIN_WITHIN_MS);
    const told = () => new Set(ear.ordersOf(saleId, 'order.created'));
    await until('all are told', () => told().size === orderIds.length, AGAIN_WITHIN_MS);
    expect([...told()].sort()).to.deep.equal([...orderIds].sort());
    expect(keeper.running, 'the same keeper').to.equal(true);
  });
});
