import { expect } from 'chai';
import { silentLog } from '../helpers/silent-log.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { redisServerOrSkip, startPrivateRedis, type PrivateRedis } from '../helpers/private-redis.js';
import { ScriptRunner, type SaleScripts } from './script-runner.js';
import { batchOf, liveOrderOf, purchasesOf } from '../helpers/sales.js';

describe('lua on a server that forgets scripts or is full', () => {
  let server: PrivateRedis | undefined;
  let runner: ScriptRunner;
  let sale: SaleScripts;

  before(async function () {
    server = await startPrivateRedis(redisServerOrSkip(this));
    runner = await ScriptRunner.open(server.url);
  });
  beforeEach(async () => {
    sale = await runner.sale({ stock: 5 });
  });
  after(async () => {
    await runner?.close();
    await server?.stop();
  });

  const knownScripts = async (): Promise<string | undefined> =>
    /number_of_cached_scripts:(\d+)/.exec(await sale.redis.info('memory'))?.[1];

  it('runs every script once at its next call after SCRIPT FLUSH [R1]', async () => {
    const batch = await sale.deducted('u1');
    await sale.redis.script('FLUSH');
    expect(await knownScripts(), 'the fault happened').to.equal('0');

    expect(await sale.precheck(purchasesOf('u2'))).to.deep.equal([1, 4, 1]);
    expect(((await sale.deduct(batchOf(sale.sale, purchasesOf('u2')))) as unknown[]).slice(0, 2)).to.deep.equal([
      'deducted',
      3,
    ]);
    expect(await sale.resolve(batch.batchId)).to.equal('deducted');
    expect(await sale.markRecorded(batch.batchId, [liveOrderOf('u1', '101')])).to.equal(1);
    expect(((await sale.release('u1', '101')) as unknown[])[0]).to.equal('released');
    expect(await sale.setState('paused')).to.equal('set');
    expect(await sale.warm()).to.equal('already_warm');
    expect((await sale.snapshot()).unitsLeft).to.equal(4);
  });

  it('runs each of a hundred calls once while the scripts are flushed [R1]', async () => {
    sale = await runner.sale({ stock: 200, limitPerBuyer: 1 });
    const calls = Array.from({ length: 100 }, (_, index) => {
      if (index === 50) void sale.redis.script('FLUSH');
      return sale.deduct(batchOf(sale.sale, purchasesOf(`u${index}`))) as Promise<unknown[]>;
    });
    const words = (await Promise.all(calls)).map(([word]) => word);
    expect(words).to.deep.equal(Array(100).fill('deducted'));
    expect((await sale.snapshot()).unitsLeft).to.equal(100);
  });

  describe('lua when memory is full [R9]', () => {
    const whenFull = async <T>(act: () => Promise<T>): Promise<T> => {
      await sale.redis.config('SET', 'maxmemory', '1');
      try {
        return await act();
      } finally {
        await sale.redis.config('SET', 'maxmemory', '0');
      }
    };
    const expectRefusal = async (call: () => Promise<unknown>, batchIds: readonly string[]): Promise<void> => {
      const before = await sale.snapshot(batchIds);
      const error = await whenFull(() =>
        call().then(
          () => null,
          (cause: Error) => cause,
        ),
      );
      expect(error?.message).to.match(/OOM|used memory/);
      expect(await sale.snapshot(batchIds), 'nothing half done').to.deep.equal(before);
    };

    it('deduct fails before its first write, even if it would refuse', async () => {
      const fits = batchOf(sale.sale, purchasesOf('u1', 'u2'));
      await expectRefusal(() => sale.deduct(fits), [fits.batchId]);
      const tooMuch = batchOf(sale.sale, purchasesOf('u1*2', 'u2*2', 'u3*2'));
      await expectRefusal(() => sale.deduct(tooMuch), [tooMuch.batchId]);
      expect(((await sale.deduct(fits)) as unknown[])[0], 'once there is room').to.equal('deducted');
    });

    it('resolve, mark-recorded and release fail before their first write', async () => {
      const { batchId } = await sale.deducted('u1', 'u2');
      await expectRefusal(() => sale.resolve('unknown-batch'), ['unknown-batch']);
      await expectRefusal(() => sale.markRecorded(batchId, [liveOrderOf('u1', '1')]), [batchId]);
      await expectRefusal(() => sale.release('u1', '101'), [batchId]);
    });

    it('precheck still reads, and so does resolve if a marker exists', async () => {
      const { batchId } = await sale.deducted('u1');
      expect(await whenFull(() => sale.precheck(purchasesOf('u2', 'u3*2')))).to.deep.equal([1, 4, 1]);
      expect(await whenFull(() => sale.resolve(batchId))).to.equal('deducted');
    });

    it('the adapter reports an unknown outcome, never a refusal, and the marker decides later', async () => {
      const store = createStockStore(runner.connection, silentLog);
      const batch = batchOf(sale.sale, purchasesOf('u1'));
      expect(await whenFull(() => store.deduct(batch))).to.deep.equal({ outcome: 'outcome_unknown' });
      expect(await whenFull(() => store.resolve(batch))).to.equal('outcome_unknown');
      expect(await store.resolve(batch)).to.equal('aborted');
      expect(await store.deduct(batch)).to.deep.equal({ outcome: 'aborted' });
    });
  });
});
