import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { stub } from 'sinon';
import { OperationalError } from '../../src/core/errors.js';
import { composeOrderId } from '../../src/core/order-id.js';
import { MysqlError } from '../../src/mysql/errors.js';
import { createOrderRepository } from '../../src/mysql/order-repository.js';
import { openMysqlPool, type MysqlOptions, type MysqlPool, type Transaction } from '../../src/mysql/pool.js';
import { createWorkerSlots } from '../../src/mysql/worker-slots.js';
import { createOrderIdMinter, type OrderIdMinter } from '../../src/orders/order-id-minter.js';
import { recordBatches } from '../../src/orders/record-batches.js';
import { silentLog } from '../helpers/silent-log.js';
import type { OrderRepository, WriteOutcome, WritePlan } from '../../src/core/ports/order-repository.js';
import { reacquiringStore as store } from '../helpers/memory/memory-redis.js';
import { batchOf, freshSaleId, purchaseOf, purchasesOf } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';
import { openLostCommitProxy } from './lost-commit-proxy.js';
import { mysqlWorld, newSale, systemClock } from './repository-worlds.js';
import { until } from '../chaos/harness/wait.js';

const OPTIONS = { paymentWindowMs: 900_000 };

describe('mysql adapters under faults', () => {
  let world: Awaited<ReturnType<typeof mysqlWorld>>;
  let minter: OrderIdMinter;
  const pools: MysqlPool[] = [];

  /** A pool of one connection, so that each statement sees the state that the previous statement left. */
  function loneWriter(url = stackEnv().MYSQL_URL, parts: Partial<MysqlOptions> = {}): MysqlPool {
    const limits = { poolMax: 1, queryTimeoutMs: 15_000, lockWaitSeconds: 1, poolWaitMs: 15_000 };
    const pool = openMysqlPool({ url, ...limits, ...parts });
    pools.push(pool);
    return pool;
  }

  before(async () => {
    world = await mysqlWorld();
    const ports = { slots: world.slots, clock: systemClock, log: silentLog };
    minter = createOrderIdMinter(ports, { owner: randomBytes(9).toString('base64url'), leaseMs: 60_000 });
    await minter.renew();
  });
  after(async () => {
    await minter?.close();
    await Promise.all(pools.map((pool) => pool.close()));
    await world?.close();
  });

  async function planFor(saleId: string, ...names: string[]): Promise<WritePlan> {
    const batch = batchOf({ saleId }, purchasesOf(...names));
    const minted = minter.mint(names);
    if (minted.outcome !== 'minted') throw new Error(minted.reason);
    const orders = batch.purchases.map((purchase, i) => ({
      batch,
      purchase,
      orderId: minted.orderIds[i] as string,
      failure: null,
    }));
    return { terms: await world.orders.termsOf([saleId]), orders, releases: [], oneByOne: new Set(), ...OPTIONS };
  }

  /** Runs `meanwhile` while another transaction locks the row of the sale. */
  async function whileLocked(saleId: string, meanwhile: (tx: Transaction) => Promise<void>): Promise<void> {
    await world.pool.transaction(async (tx) => {
      await tx.query('SELECT id FROM sales WHERE id = ? FOR UPDATE', [saleId]);
      await meanwhile(tx);
      await tx.rollback();
    });
  }

  const failureOf = async (promise: Promise<unknown>): Promise<MysqlError> => {
    const error = await promise.then(
      () => null,
      (cause: unknown) => cause,
    );
    expect(error).to.be.instanceOf(MysqlError).and.be.instanceOf(OperationalError);
    return error as MysqlError;
  };
  const rowsOf = (saleId: string, ...names: string[]) => world.orders.findByPurchases(saleId, purchasesOf(...names));

  it('returns `again` on lock wait 1205, and leaves no statement of the transaction to the next [D3]', async () => {
    const { saleId } = await world.sales.create(newSale());
    const writer = loneWriter();
    const repository = createOrderRepository(writer);

    await whileLocked(saleId, async () => {
      expect(await repository.write(await planFor(saleId, 'ann'))).to.deep.equal({ outcome: 'again' });
    });

    expect((await repository.write(await planFor(saleId, 'bob'))).outcome).to.equal('written');
    expect((await rowsOf(saleId, 'ann', 'bob')).map(({ userId }) => userId)).to.deep.equal(['bob']);
    expect(await world.violations(saleId)).to.deep.equal([]);
  });

  it('retries the whole transaction after deadlock 1213, and records the batch once [D3]', async () => {
    const { saleId } = await world.sales.create(newSale());
    const other = await world.sales.create(newSale({ stock: 1000 }));
    const batch = batchOf({ saleId }, purchasesOf('ann'));
    const outcomes: WriteOutcome[] = [];
    const repository: OrderRepository = {
      ...world.orders,
      write: async (plan) => {
        const outcome = await world.orders.write(plan);
        outcomes.push(outcome);
        return outcome;
      },
    };
    let recording: ReturnType<typeof recordBatches> | undefined;

    await whileLocked(saleId, async (tx) => {
      // MySQL rolls back the smaller transaction, so this transaction changes more than the writer.
      const ballast = Array.from({ length: 60 }, (_, i) => {
        const id = composeOrderId(Date.now() - 86_400_000 - i, 7, 'ballast', Math.floor(Math.random() * 256));
        return `(${id}, ${other.saleId}, 'b${i}', 'k', 'ballast', 1, 1, 0, 'pending_payment')`;
      });
      const insert =
        'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, state) VALUES ';
      await tx.execute(insert + ballast.join());
      recording = recordBatches([batch], { repository, clock: systemClock, minter, store }, OPTIONS);
      await pause(1000); // Now the writer has inserted its row and waits for the sale.
      await tx.execute(`${insert} (1, ${saleId}, 'ann', 'k1', 'rival', 1, 1, 0, 'pending_payment')`);
    });

    expect((await recording)?.map(({ outcome }) => outcome)).to.deep.equal(['recorded']);
    expect(outcomes[0], 'the fault happened').to.deep.equal({ outcome: 'again' });
    expect(await rowsOf(saleId, 'ann')).to.have.length(1);
    expect(await world.violations(saleId)).to.deep.equal([]);
  });

  it('leaves nothing when the connection is killed before COMMIT, and records the same batch later [D4]', async () => {
    const { saleId } = await world.sales.create(newSale());
    const writer = loneWriter();
    const [row] = await writer.query<{ id: string }>('SELECT CONNECTION_ID() AS id');
    const batch = batchOf({ saleId }, purchasesOf('ann'));
    const ports = { repository: createOrderRepository(writer), clock: systemClock, minter, store };

    await whileLocked(saleId, async () => {
      const recording = recordBatches([batch], ports, OPTIONS);
      await pause(200);
      await world.pool.execute(`KILL CONNECTION ${row?.id}`);
      const [result] = await recording;
      expect(result).to.include({ outcome: 'retry', reason: 'unavailable' });
      expect(result?.outcome === 'retry' ? (result.error as MysqlError).kind : null).to.equal('connection_lost');
    });

    expect(await rowsOf(saleId, 'ann')).to.deep.equal([]);
    expect((await recordBatches([batch], ports, OPTIONS)).map(({ outcome }) => outcome)).to.deep.equal(['recorded']);
    expect(await world.violations(saleId)).to.deep.equal([]);
  });

  it('counts sold once when the reply to COMMIT is lost and the batch is delivered again [D4]', async () => {
    const { saleId } = await world.sales.create(newSale());
    const proxy = await openLostCommitProxy(stackEnv().MYSQL_URL);
    const batch = batchOf({ saleId }, purchasesOf('ann*2'));
    const lossy = { repository: createOrderRepository(loneWriter(proxy.url)), clock: systemClock, minter, store };

    const [first] = await recordBatches([batch], lossy, OPTIONS);
    await proxy.close();

    expect(proxy.lostReplies, 'the fault happened').to.equal(1);
    expect(first).to.include({ outcome: 'retry', reason: 'unavailable' });
    await until('committed all the same', async () => (await rowsOf(saleId, 'ann*2')).length === 1);
    const [second] = await recordBatches([batch], { ...lossy, repository: world.orders }, OPTIONS);
    expect(second?.outcome).to.equal('already_recorded');
    expect((await world.sales.find(saleId))?.sold).to.equal(2);
    expect((await world.outboxOf(batch.batchId)).recorded).to.have.length(1);
    expect(await world.violations(saleId)).to.deep.equal([]);
  });

  it('takes the locks from a stalled writer, whose late COMMIT then writes nothing [M10]', async () => {
    const { saleId } = await world.sales.create(newSale());
    const frozen = loneWriter(undefined, { silentSeconds: 1 });

    const late = failureOf(
      frozen.transaction(async (tx) => {
        await tx.execute('UPDATE sales SET sold = sold + 5 WHERE id = ?', [saleId]);
        await pause(2000);
      }),
    );
    await pause(1400);
    expect((await world.orders.write(await planFor(saleId, 'ann'))).outcome).to.equal('written');

    expect((await late).kind).to.equal('connection_lost');
    expect((await world.sales.find(saleId))?.sold).to.equal(1);
  });

  it('fails in time on an exhausted pool or a slow statement, and keeps the pool working [D2]', async () => {
    const waits: number[] = [];
    const pool = loneWriter(undefined, {
      queryTimeoutMs: 5_000,
      poolWaitMs: 2_000,
      onWait: (waitedMs) => waits.push(waitedMs),
    });
    const slow = failureOf(pool.query('SELECT SLEEP(30)'));
    await pause(50);
    expect(await failureOf(pool.query('SELECT 1'))).to.include({ kind: 'too_busy', retryable: true });
    expect(await slow).to.include({ kind: 'timed_out', retryable: true });
    expect(await pool.query("SELECT 'works' AS it")).to.deep.equal([{ it: 'works' }]);
    expect(waits, 'each caller waited, one of them in vain').to.have.length(3);
    expect(waits[1]).to.equal(2_000);
  });

  it('does not reuse the connection after an unknown error or a read-only error [D1]', async () => {
    const pool = loneWriter(undefined, { poolWaitMs: 10_000 }); // A new connection takes time on a busy machine.
    const connectionId = async (): Promise<unknown> => (await pool.query('SELECT CONNECTION_ID() AS id'))[0];
    const first = await connectionId();
    expect(await connectionId()).to.deep.equal(first);
    expect(await failureOf(pool.query('SELEC 1'))).to.include({ kind: 'other', retryable: false });
    expect(await connectionId()).not.to.deep.equal(first);
  });

  it('closes an idle connection before the server does, so that the next statement does not fail', async () => {
    const pool = loneWriter(undefined, { poolMax: 2, silentSeconds: 2 });
    const connectionId = async (): Promise<unknown> => (await pool.query('SELECT CONNECTION_ID() AS id'))[0];
    const first = await connectionId();
    expect(await connectionId()).to.deep.equal(first);
    await pause(3500);
    expect(await connectionId(), 'a new one, and no error').not.to.deep.equal(first);
  });

  it('reports connection_lost as retryable when the server is missing [D1]', async () => {
    const url = new URL(stackEnv().MYSQL_URL);
    url.port = '1';
    expect(await failureOf(loneWriter(url.href).probe())).to.include({ kind: 'connection_lost', retryable: true });
  });

  it('remembers for a while that MySQL refused a write on a full disk [L3]', async () => {
    const pool = loneWriter();
    expect(pool.writeRefusal()).to.equal(null);
    await pool.execute('SET SESSION max_heap_table_size = 16384');
    await pool.execute('CREATE TEMPORARY TABLE small (text VARCHAR(1000)) ENGINE = MEMORY');
    const fill = async (): Promise<void> => {
      for (let rows = 0; rows < 1_000; rows++) await pool.execute("INSERT INTO small VALUES (REPEAT('x', 1000))");
    };
    expect(await failureOf(fill())).to.include({ kind: 'disk_full', retryable: true });
    await pool.probe();
    expect(pool.writeRefusal()).to.match(
      /^MySQL refuses writes because it has no space\. Check its disk\. \(mysql: disk_full/,
    );
    const nowMs = performance.now();
    const after = (ms: number): string | null => {
      const clock = stub(performance, 'now').returns(nowMs + ms);
      const known = pool.writeRefusal();
      clock.restore();
      return known;
    };
    expect(after(20_000), 'a worker that pauses has not tried again by then').not.to.equal(null);
    expect(after(60_000), 'nothing was refused since').to.equal(null);
  });

  it('reports that MySQL does not finish writes, and nothing about a slow read [L3]', async () => {
    const pool = loneWriter(undefined, { queryTimeoutMs: 300 });
    expect(await failureOf(pool.query('SELECT SLEEP(2)'))).to.include({ kind: 'timed_out' });
    expect(pool.writeRefusal()).to.equal(null);
    expect(await failureOf(pool.execute('DO SLEEP(2)'))).to.include({ kind: 'timed_out' });
    expect(pool.writeRefusal()).to.match(/^MySQL does not finish writes\. Check its disk\. \(mysql: timed_out/);
  });

  it('sets strict mode, UTC and READ COMMITTED, and counts only changed rows of an UPDATE [D7]', async () => {
    const { saleId } = await world.sales.create(newSale());
    const [session] = await world.pool.query<{ mode: string; zone: string }>(
      'SELECT @@sql_mode AS mode, @@time_zone AS zone',
    );
    expect(session?.mode).to.include('STRICT_ALL_TABLES').and.not.include('NO_BACKSLASH_ESCAPES');
    expect(session?.zone).to.equal('+00:00');
    const [level] = await world.pool.query<{ Value: string }>(
      "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')",
    );
    expect(level?.Value).to.equal('READ-COMMITTED');
    expect((await world.pool.execute('UPDATE sales SET sold = sold WHERE id = ?', [saleId])).affectedRows).to.equal(0);
    const clipped = { ...purchaseOf('ann'), quantity: 65_536 };
    const plan = await planFor(saleId, 'ann');
    const orders = plan.orders.map((order) => ({ ...order, purchase: clipped }));
    expect(await world.orders.write({ ...plan, orders })).to.deep.equal({ outcome: 'value_refused' });
    // MySQL refuses all purchases of the plan
    const refused = await failureOf(world.orders.write({ ...plan, orders, singleOut: true }));
    expect(refused).to.include({ kind: 'bad_value', retryable: false });
    expect(await rowsOf(saleId, 'ann')).to.deep.equal([]);
  });

  it('escapes a user id even when it is invalid [S6]', async () => {
    const { saleId } = await world.sales.create(newSale());
    const userId = "x'),(1,2) -- \\";
    const plan = await planFor(saleId, 'ann');
    const orders = plan.orders.map((order) => ({ ...order, purchase: { ...order.purchase, userId } }));
    expect((await world.orders.write({ ...plan, orders })).outcome).to.equal('written');
    const found = await world.orders.findByPurchases(saleId, [{ userId, requestId: 'k1' }]);
    expect(found.map((order) => order.userId)).to.deep.equal([userId]);
  });

  it('gives an expired lease to the next owner, and a different slot to the old owner [D8]', async () => {
    const slots = createWorkerSlots(world.pool);
    const [ann, bob] = [randomBytes(9).toString('base64url'), randomBytes(9).toString('base64url')];
    const { slot } = await slots.acquire(ann, 10_000);
    // older than any other free slot, and therefore next
    await world.pool.execute("UPDATE worker_slots SET leased_until = '1999-01-01' WHERE owner = ?", [ann]);
    expect((await slots.acquire(bob, 10_000)).slot).to.equal(slot);
    expect((await slots.acquire(ann, 10_000)).slot).not.to.equal(slot);
    await Promise.all([slots.free(ann), slots.free(bob)]);
  });

  it('returns epoch_changed and writes nothing for an unknown sale', async () => {
    const saleId = freshSaleId();
    const plan = await planFor(saleId, 'ann');
    const terms = new Map([
      [saleId, { saleId, epoch: 1, priceCents: 1, limitPerBuyer: 1, paymentWindowMs: null, retired: false }],
    ]);
    expect(await world.orders.write({ ...plan, terms })).to.deep.equal({ outcome: 'epoch_changed' });
    expect(await rowsOf(saleId, 'ann')).to.deep.equal([]);
  });
});
