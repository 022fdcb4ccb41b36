import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { otherCell, slotsOfCell } from '../../src/core/cell.js';
import { OperationalError } from '../../src/core/errors.js';
import { composeOrderId } from '../../src/core/order-id.js';
import { createOrderSearch } from '../../src/mysql/order-search.js';
import { openMysqlPool } from '../../src/mysql/pool.js';
import { createSaleRepository } from '../../src/mysql/sale-repository.js';
import { createWorkerSlots } from '../../src/mysql/worker-slots.js';
import { createClient, type Answer, type OrdersOfCells } from '../../web/client/index.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { bearer, FakeServices, startServer, type Started } from '../unit/http/http-harness.js';
import { newSale, ownMysqlWorld } from './repository-worlds.js';

const CELL = 3;
/** In these versions only an administrator may set the id increment of a session. */
const ASKS_A_RIGHT = /^8\.0\.1[4-7]/;

async function cellOnMysql(cell: number) {
  const world = await ownMysqlWorld();
  const [server] = await world.pool.query<{ version: string }>('SELECT VERSION() AS version');
  const pool = openMysqlPool({ url: world.url, poolMax: 4, queryTimeoutMs: 20_000, cell });
  const close = async (): Promise<void> => {
    await pool.close();
    await world.close();
  };
  return { orders: world.orders, pool, mayNumber: !ASKS_A_RIGHT.test(server?.version ?? ''), close };
}

describe('contract: a cell on MySQL', () => {
  it('gives each sale and each order an id of its own cell', async function () {
    const { pool, mayNumber, close } = await cellOnMysql(CELL);
    try {
      if (!mayNumber) this.skip();
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
      await close();
    }
  });
});

describe('contract: the orders of a buyer in two cells', () => {
  const CELLS = [1, 2];
  const wanted = () => newSale({ limitPerBuyer: 10, stock: 100 });
  const cells: Awaited<ReturnType<typeof cellOnMysql>>[] = [];
  let servers: Started[] = [];
  /** Orders of ann in both cells, newest first. */
  let all: string[] = [];

  before(async function () {
    const startedMs = Date.now() - 60_000;
    for (const cell of CELLS) {
      const opened = await cellOnMysql(cell);
      cells.push(opened);
      if (!opened.mayNumber) this.skip();
      const sales = createSaleRepository(opened.pool);
      const [first, second] = [await sales.create(wanted()), await sales.create(wanted())];
      for (const [half, sale] of [second, first].entries()) {
        const batch = batchOf(sale, purchasesOf('ann/k1', 'bob/k1', 'ann/k2', 'ann/k3', 'ann/k4'));
        const orders = batch.purchases.map((purchase, index) => {
          const atMs = startedMs + 20_000 * half + 1_000 * (3 * cell + index);
          const orderId = composeOrderId(atMs, slotsOfCell(cell)[0], purchase.userId, index);
          return { orderId, batch, purchase, failure: null };
        });
        const terms = await opened.orders.termsOf([sale.saleId]);
        const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 900_000 };
        expect((await opened.orders.write(plan)).outcome).to.equal('written');
        all.push(...orders.filter(({ purchase }) => purchase.userId === 'ann').map(({ orderId }) => orderId));
      }
    }
    all = all.sort((a, b) => (BigInt(a) < BigInt(b) ? 1 : -1));
    expect(all).to.have.length(16);
  });
  after(() => Promise.all(cells.map(({ close }) => close())));

  beforeEach(async () => {
    servers = await Promise.all(
      cells.map(({ pool }, index) =>
        startServer(new FakeServices({ cell: CELLS[index] ?? 0, orderSearch: createOrderSearch(pool) })),
      ),
    );
  });
  afterEach(() => Promise.all(servers.map((server) => server.stop())));

  /** Sends each request to the cell in its header, like the proxy. */
  const client = createClient({
    baseUrl: 'http://cells.example',
    token: bearer('ann').slice('Bearer '.length),
    fetch: (url, init) => {
      const cell = Number(new Headers(init?.headers).get('Seckill-Cell'));
      return fetch(String(url).replace('http://cells.example', servers[cell - 1]?.url ?? ''), init);
    },
  });
  async function pages(limit: number): Promise<Answer<OrdersOfCells>[]> {
    const found: Answer<OrdersOfCells>[] = [];
    let after: string | null = null;
    do {
      const page: Answer<OrdersOfCells> = await client.ordersOfCells(CELLS, { after, limit, patienceMs: 0 });
      found.push(page);
      after = page.ok ? page.body.next : null;
    } while (after !== null);
    return found;
  }
  const idsIn = (found: readonly Answer<OrdersOfCells>[]): string[] =>
    found.flatMap((page) => (page.ok ? page.body.orders.map(({ orderId }) => orderId) : []));

  it('reads each order once, newest first, for any page size', async () => {
    for (const limit of [1, 2, 3, 8, 100]) {
      const found = await pages(limit);
      expect(idsIn(found), `pages of ${limit}`).to.deep.equal(all);
      for (const page of found) expect(page).to.have.nested.property('body.missingCells').that.deep.equals([]);
      for (const page of found.slice(0, -1)) expect(idsIn([page]).length).to.be.at.least(limit);
    }
  });

  it('names the cell that does not answer, and is refused if none answers', async () => {
    await servers[1]?.stop();
    const found = await pages(3);
    expect(idsIn(found)).to.deep.equal(all.filter((orderId) => otherCell(1, { orderId }) === null));
    for (const page of found) expect(page).to.have.nested.property('body.missingCells').that.deep.equals([2]);
    await servers[0]?.stop();
    expect(await pages(3)).to.have.nested.property('[0].code', 'no_answer');
  });

  it('exports the orders of a user from each cell with the documented loop, and names a cell that is down', async () => {
    const page = readFileSync(join(REPO_DIR, 'docs/servers.md'), 'utf8');
    const loop = /```sh\n(for cell in [\s\S]*?)```/.exec(page)?.[1] ?? '';
    expect(loop).to.include('https://cell-$cell.example:9443/');
    const env = {
      ...process.env,
      TOKEN: bearer('olga', ['viewer']).slice('Bearer '.length),
      ...Object.fromEntries(servers.map(({ operatorsUrl }, index) => [`CELL_${index + 1}`, operatorsUrl])),
    };
    const script = loop.replace('https://cell-$cell.example:9443', '$(printenv CELL_$cell)');
    const run = () => promisify(execFile)('bash', ['-c', script], { env });
    const idsOf = (lines: string): string[] => lines.match(/(?<="orderId":")\d+/g) ?? [];
    const both = await run();
    expect(idsOf(both.stdout)).to.have.members(all);
    expect(both.stderr).to.equal('');
    await servers[0]?.stop();
    const one = await run();
    expect(idsOf(one.stdout)).to.deep.equal(all.filter((orderId) => otherCell(2, { orderId }) === null));
    expect(one.stderr).to.include('cell 1 is missing');
  });
});
