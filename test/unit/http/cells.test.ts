import { expect } from 'chai';
import request from 'supertest';
import { slotsOfCell } from '../../../src/core/cell.js';
import { composeOrderId } from '../../../src/core/order-id.js';
import { bearer, FakeServices, ORDER, startServer, type Started } from './http-harness.js';

describe('an api of a cell', () => {
  let server: Started | undefined;
  afterEach(() => server?.stop());
  const serve = async (cell: number): Promise<string> => {
    const getOrder = () => Promise.resolve(ORDER);
    return (server = await startServer(new FakeServices({ cell, getOrder }))).url;
  };
  /** @returns the status, and the cell that the answer names */
  async function ask(url: string, path: string): Promise<string> {
    const asked = path.endsWith('purchases')
      ? request(url).post(path).set('idempotency-key', 'k1')
      : request(url).get(path);
    const { status, headers } = await asked.set('authorization', bearer());
    return `${status} ${headers['seckill-cell'] ?? ''}`.trim();
  }
  const orderIn = (cell: number, which: 0 | 1): string =>
    composeOrderId(Date.now(), slotsOfCell(cell)[which], 'ann', 200);

  it('answers 421 and names the cell if a sale or an order is in another cell', async () => {
    const url = await serve(3);
    expect(await ask(url, '/v1/sales/703/purchases')).to.equal('202');
    expect(await ask(url, '/v1/sales/3/purchases')).to.equal('202');
    expect(await ask(url, '/v1/sales/712/purchases')).to.equal('421 12');
    expect(await ask(url, '/v1/sales/303001/purchases')).to.equal('421 1');
    for (const which of [0, 1] as const) {
      expect(await ask(url, `/v1/orders/${orderIn(3, which)}`)).to.equal('200');
      expect(await ask(url, `/v1/orders/${orderIn(2, which)}`)).to.equal('421 2');
      expect(await ask(url, `/v1/orders/${orderIn(4, which)}`)).to.equal('421 4');
    }
  });

  it('serves every sale and order if there are no cells', async () => {
    const url = await serve(0);
    expect(await ask(url, '/v1/sales/712/purchases')).to.equal('202');
    for (const cell of [1, 16]) expect(await ask(url, `/v1/orders/${orderIn(cell, 1)}`)).to.equal('200');
  });
});
