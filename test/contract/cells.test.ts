import { expect } from 'chai';
import { otherCell } from '../../src/core/cell.js';
import { OperationalError } from '../../src/core/errors.js';
import { composeOrderId } from '../../src/core/order-id.js';
import { openMysqlPool } from '../../src/mysql/pool.js';
import { createSaleRepository } from '../../src/mysql/sale-repository.js';
import { createWorkerSlots } from '../../src/mysql/worker-slots.js';
import { newSale, ownMysqlWorld } from './repository-worlds.js';

const CELL = 3;
/** In these versions only an administrator may set the id increment of a session. */
const ASKS_A_RIGHT = /^8\.0\.1[4-7]/;

describe('contract: a cell on MySQL', () => {
  it('gives each sale and each order an id of its own cell', async function () {
    const world = await ownMysqlWorld();
    const pool = openMysqlPool({ url: world.url, poolMax: 4, queryTimeoutMs: 20_000, cell: CELL });
    try {
      const [server] = await world.pool.query<{ version: string }>('SELECT VERSION() AS version');
      if (ASKS_A_RIGHT.test(server?.version ?? '')) this.skip();
      const sales = createSaleRepository(pool);
      const ids = [await sales.create(newSale()), await sales.create(newSale())].map(({ saleId }) => saleId);
      expect(ids).to.deep.equal(['3', '103']);

      const slots = createWorkerSlots(pool, CELL);
      const acquire = (owner: string): Promise<number> => slots.acquire(owner, 60_000).then(({ slot }) => slot);
      const taken = await Promise.all(Array.from({ length: 16 }, (_, index) => acquire(`worker-${index}`)));
      const orders = new Set(taken.map((slot) => composeOrderId(Date.now(), slot, 'ann', 0)));
      expect(orders.size).to.equal(16);
      for (const orderId of orders) expect(otherCell(CELL, { orderId })).to.equal(null);
      const error = await acquire('one more').catch((cause: unknown) => cause);
      expect(error, 'the other slots belong to other cells').to.be.instanceOf(OperationalError);
    } finally {
      await pool.close();
      await world.close();
    }
  });
});
