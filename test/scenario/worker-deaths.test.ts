import { expect } from 'chai';
import { Buyers, userIds } from '../helpers/buyers.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../helpers/open-sale.js';
import type { Program } from '../helpers/programs.js';
import { useSystem } from '../helpers/system.js';

const STOCK = 20;
const BUYERS = userIds(5);
/** The least the broker takes: what a dead worker held comes again after it, and after a time-out of MySQL twice. */
const WORKER_ENV = { WORKER_INVISIBLE_MS: '10000', MYSQL_QUERY_TIMEOUT_MS: '5000' };

/** Points behind the COMMIT. */
const LEAVES_ROWS = new Set(['worker_after_commit', 'worker_after_settle']);
const WORKERS_MAX = 4;

/** What a worker left behind that was killed at a fail point. */
interface Death {
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly rows: number;
  readonly pending: number;
}

describe('a worker that is killed between two steps of recording', () => {
  let api: Program;
  const deaths = new Map<string, Death>();
  const system = useSystem(async ({ programs }) => {
    api = await programs.start('api');
    // one after the other, so that each gets the batch of its own sale; the last one receives a message that is left
    for (const point of [
      'worker_after_settle',
      'worker_after_commit',
      'worker_before_commit',
      'worker_after_insert',
      'worker_after_receive',
    ]) {
      deaths.set(point, await killAt(point));
    }
    await Promise.all([programs.start('worker', { env: WORKER_ENV }), programs.start('keeper')]);
  });

  async function killAt(point: string): Promise<Death> {
    const { stack, programs } = system;
    const { saleId } = await openSale(stack, { stock: STOCK });
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    for (const answer of await buyers.rush(BUYERS, BUYERS.length)) expect(answer?.status).to.equal(202);
    for (let workers = 1; ; workers++) {
      const worker = await programs.start('worker', { env: { ...WORKER_ENV, FAILPOINT: point } });
      expect(await worker.ended(30_000), point).to.deep.equal({ code: null, signal: 'SIGKILL' });
      expect(worker.log).to.contain(`"failPoint":"${point}"`);
      const rows = await rowsOf(saleId);
      const pending = await stack.audit.ledger.pendingCount({ saleId, bucket: 0 });
      // A message that an earlier test has left may be what killed it; then ours is there for the next worker.
      const ours = rows > 0 || !LEAVES_ROWS.has(point);
      if (ours || workers === WORKERS_MAX) return { saleId, buyers, rows, pending };
    }
  }

  async function rowsOf(saleId: string): Promise<number> {
    const [row] = await system.stack.mysql.query<{ rows: string }>(
      'SELECT COUNT(*) AS `rows` FROM orders WHERE sale_id = ?',
      [saleId],
    );
    return Number(row?.rows);
  }

  async function expectOneOrderEach(point: string): Promise<void> {
    const { saleId, buyers } = deaths.get(point) as Death;
    const figures = await expectInvariants(system.stack, saleId, buyers.opLog);
    const count = BUYERS.length;
    expect(figures).to.include({ rows: count, sold: count, unitsLeft: STOCK - count, failedRows: 0 });
    const recorded = await system.stack.mysql.query<{ key: string; copies: string }>(
      "SELECT `key`, COUNT(*) AS copies FROM outbox WHERE kind = 'batch_recorded' AND payload LIKE ? GROUP BY `key`",
      [`%"saleId":"${saleId}"%`],
    );
    expect(
      recorded.map(({ copies }) => Number(copies)),
      'one outbox row per batch',
    ).to.not.include(2);
    expect(recorded.length).to.be.at.least(1);
  }

  for (const point of ['worker_after_receive', 'worker_after_insert', 'worker_before_commit']) {
    it(`M9 G11 ${point}: nothing was written, the message comes again and is recorded once`, async () => {
      const death = deaths.get(point) as Death;
      expect(death.pending, 'deducted and not settled').to.be.at.least(1);
      expect(death.rows, 'no half-recorded batch').to.equal(0);
      await expectOneOrderEach(point);
    });
  }

  it('M9 worker_after_commit: the rows are there, Redis hears of them later', async () => {
    const death = deaths.get('worker_after_commit') as Death;
    expect(death.rows).to.be.at.least(1);
    expect(death.pending).to.be.at.least(1);
    await expectOneOrderEach('worker_after_commit');
  });

  it('M9 worker_after_settle: only the ack is missing, the second copy changes nothing', async () => {
    const death = deaths.get('worker_after_settle') as Death;
    expect(death.rows).to.be.at.least(1);
    await expectOneOrderEach('worker_after_settle');
  });
});
