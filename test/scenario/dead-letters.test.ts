import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { sealBatch, type Batch } from '../../src/domain/batch.js';
import { silentLog } from '../../src/ports/log.js';
import { createStockLedger } from '../../src/redis/stock-ledger.js';
import { createRedriveChannel, type OpenRedriveChannel } from '../../src/rocketmq/redrive-channel.js';
import { Buyers, userIds } from '../helpers/buyers.js';
import { runCommand } from '../helpers/command.js';
import { ask } from '../helpers/http-client.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../helpers/open-sale.js';
import type { Program } from '../helpers/programs.js';
import { useSystem } from '../helpers/system.js';
import { found, until } from '../helpers/until.js';

/** Six tries, which the broker spaces by 2 to 5 s whatever is asked, then its dead-letter topic. */
const DEAD_LETTER_MS = 90_000;

interface Letter {
  readonly batch_id: string;
  readonly origin_topic: string;
  readonly reason: string;
  readonly state: string;
  readonly attempts: number;
  readonly body: string;
}

describe('consumer faults: messages that no worker can turn into orders', () => {
  let api: Program;
  let workers: Program[];
  let channel: OpenRedriveChannel;
  const system = useSystem(async ({ stack, programs }) => {
    const env = { WORKER_RETRY_FIRST_MS: '10' };
    // no re-drive in between: it would be another message of the same batch
    const keeper = programs.start('keeper', { env: { KEEPER_EVERY_MS: '200', REDRIVE_AFTER_MS: '600000' } });
    [api, ...workers] = await Promise.all([
      programs.start('api'),
      programs.start('worker', { env }),
      programs.start('worker', { env }),
    ]);
    await keeper;
    channel = await createRedriveChannel({ endpoint: stack.env.ROCKETMQ_ENDPOINT, log: silentLog });
  });
  after(() => channel?.close());

  function batchOf(saleId: string, users: readonly string[]): Batch {
    return sealBatch({
      ...{ batchId: randomBytes(16).toString('base64url'), saleId, bucket: 0, epoch: 1 },
      ...{ createdAtMs: Date.now(), trace: '' },
      purchases: users.map((userId) => ({ userId, requestId: 'k1', quantity: 1 })),
    });
  }

  const lettersOf = (batchId: string): Promise<Letter[]> =>
    system.stack.mysql.query<Letter>(
      'SELECT batch_id, origin_topic, reason, state, attempts, body FROM dead_letters WHERE batch_id = ?',
      [batchId],
    );
  const verdicts = async (verdict: string): Promise<number> => {
    const counts = workers.map(async ({ probeUrl }) => {
      const { text } = await ask(`${probeUrl}/metrics`);
      return Number(new RegExp(`seckill_deliveries_total\\{verdict="${verdict}"[^}]*\\} (\\d+)`).exec(text)?.[1] ?? 0);
    });
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  };

  it('M7 bad JSON, an unknown version and an unknown sale are parked with their origin; others go on', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 10 });
    const good = batchOf(saleId, userIds(3));
    expect(await createStockLedger(stack.redis, silentLog).deduct(good)).to.deep.equal({ outcome: 'deducted' });
    const poison = {
      undecodable: { ...batchOf(saleId, ['eve']), body: '{"v":1,' },
      unknown_version: { ...batchOf(saleId, ['eve']), body: '{"v":99}' },
      unknown_sale: batchOf('999999999999999999', ['eve']),
    };
    await Promise.all([...Object.values(poison), good].map((batch) => channel.publish(batch)));

    for (const [reason, { batchId, body }] of Object.entries(poison)) {
      const letter = await found(`the letter ${reason}`, async () => (await lettersOf(batchId))[0], 20_000);
      expect(letter).to.include({ reason, body, state: 'parked', origin_topic: 'seckill-purchase-redrive' });
    }
    const figures = await expectInvariants(stack, saleId);
    expect(figures).to.include({ rows: 3, sold: 3, unitsLeft: 7 });
  });

  it('M5 one batch delivered five times at once, to two workers, is recorded once', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 50 });
    const batch = batchOf(saleId, userIds(40));
    expect(await createStockLedger(stack.redis, silentLog).deduct(batch)).to.deep.equal({ outcome: 'deducted' });
    const before = (await verdicts('recorded')) + (await verdicts('already_recorded'));
    await Promise.all(Array.from({ length: 5 }, () => channel.publish(batch)));

    await until(
      'five copies have arrived',
      async () => (await verdicts('recorded')) + (await verdicts('already_recorded')) === before + 5,
      30_000,
    );
    const figures = await expectInvariants(stack, saleId);
    expect(figures).to.include({ rows: 40, sold: 40, unitsLeft: 10, duplicates: 0 });
    const outbox = await stack.mysql.query("SELECT id FROM outbox WHERE kind = 'batch_recorded' AND `key` = ?", [
      batch.batchId,
    ]);
    expect(outbox).to.have.length(1);
  });

  it('M8 a batch that MySQL always refuses is parked once, its unit stays held until it is replayed, other sales go on', async () => {
    const { stack } = system;
    const [refused, healthy] = [await openSale(stack, { stock: 10 }), await openSale(stack, { stock: 1000 })];
    const buyersOf = (saleId: string): Buyers => new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    const [unlucky, lucky] = [buyersOf(refused.saleId), buyersOf(healthy.saleId)];
    const trigger = `refuse_sale_${refused.saleId}`;
    await stack.mysql.execute(
      `CREATE TRIGGER ${trigger} AFTER INSERT ON orders FOR EACH ROW
         IF NEW.sale_id = ${refused.saleId} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by the test'; END IF`,
    );
    let letter: Letter;
    try {
      const load = lucky.startLoad({ parallel: 2, pauseMs: 100 });
      expect((await unlucky.buy('ann'))?.status).to.equal(202);
      const [batchId] = (await stack.audit.ledger.snapshot({ saleId: refused.saleId, bucket: 0 }))?.pending ?? [];
      letter = await found('the dead letter', async () => (await lettersOf(batchId ?? ''))[0], DEAD_LETTER_MS);
      await load.stop();
      expect(await verdicts('retry'), 'every try was made').to.be.at.least(6);
    } finally {
      await stack.mysql.execute(`DROP TRIGGER ${trigger}`);
    }

    expect(letter).to.include({ reason: 'retries_exhausted', state: 'parked', origin_topic: 'seckill-purchase' });
    const ledger = () => stack.audit.ledger.snapshot({ saleId: refused.saleId, bucket: 0 });
    await until('it is out of pending', async () => (await ledger())?.pending.length === 0);
    expect((await ledger())?.unitsLeft, 'its unit stays held').to.equal(9);
    expect((await unlucky.status('ann')).json).to.include({ status: 'pending' });
    const others = await expectInvariants(stack, healthy.saleId, lucky.opLog);
    expect(others.rows, 'other sales went on').to.be.greaterThan(10);

    const replay = await runCommand(['dlq', 'replay', '--all-matching', '--sale', refused.saleId, '--json'], stack.env);
    expect(replay.lines, replay.stderr).to.have.length(1);
    expect(replay.lines[0]).to.include({ outcome: 'replayed', note: 'recorded: 1 live, 0 ended' });
    expect((await unlucky.status('ann')).json.status).to.equal('ordered');
    const figures = await expectInvariants(stack, refused.saleId, unlucky.opLog);
    expect(figures).to.include({ rows: 1, sold: 1, unitsLeft: 9 });
    expect(await lettersOf(letter.batch_id), 'parked once').to.have.length(1);
  });
});
