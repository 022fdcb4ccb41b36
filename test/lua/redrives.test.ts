import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { ScriptRunner, type SaleScripts } from './script-runner.js';

const LEASE_MS = 20_000;

describe('lua/take-due-2.lua and lua/leave-alone-1.lua', () => {
  const runner = ScriptRunner.inSuite();
  let sale: SaleScripts;
  beforeEach(async () => {
    sale = await runner.sale({ stock: 100, limitPerBuyer: 50 });
  });

  const run = (name: 'take-due' | 'leave-alone', keys: string[], args: (string | number)[]) =>
    runner.connection.run(name, keys, args) as Promise<unknown>;
  const takeDue = async ({ max = 10, look = 100, from = 0, olderThanMs = 0 } = {}) => {
    const args = [olderThanMs, LEASE_MS, max, look, from];
    const reply = (await run('take-due', [sale.keys.pending, sale.keys.redrives], args)) as (string | number)[];
    const [nowMs, nextFrom, more, ...taken] = reply;
    return { nowMs: Number(nowMs), nextFrom: Number(nextFrom), more, taken: taken.filter((_, i) => i % 2 === 0) };
  };
  const leaveAlone = (pauses: [string, number][]) =>
    run('leave-alone', [sale.keys.redrives], [JSON.stringify(pauses)]) as Promise<number>;
  const deducted = async (): Promise<Batch> => {
    const batch = batchOf(sale.sale, purchasesOf('u1'));
    await sale.redis.zadd(sale.keys.pending, (await runner.nowMs()) - 1, batch.batchId);
    return batch;
  };
  /** Adds members to pending, each with the time of its deduct. */
  const pending = async (...members: [batchId: string, atMs: number][]): Promise<void> => {
    for (const [batchId, atMs] of members) await sale.redis.zadd(sale.keys.pending, atMs, batchId);
  };

  it('ends a lease at its time and expires the key a minute after the last lease', async () => {
    const { batchId } = await deducted();
    const { nowMs } = await takeDue();
    expect(await sale.redis.zscore(sale.keys.redrives, batchId)).to.equal(String(nowMs + LEASE_MS));
    const ttlMs = await sale.redis.pttl(sale.keys.redrives);
    expect(ttlMs).to.be.within(LEASE_MS + 55_000, LEASE_MS + 60_000);
    await leaveAlone([[batchId, 3_600_000]]);
    expect(await sale.redis.pttl(sale.keys.redrives)).to.be.within(3_650_000, 3_660_000);
    await leaveAlone([['other', 1]]);
    expect(await sale.redis.pttl(sale.keys.redrives), 'never shorter').to.be.within(3_650_000, 3_660_000);
  });

  it('reads a limited number of batches per call, and continues in the next call', async () => {
    await pending(['a', 1000], ['b', 2000], ['c', 3000], ['d', 4000], ['e', 5000]);
    await leaveAlone([
      ['a', 90_000],
      ['b', 90_000],
      ['c', 90_000],
    ]);
    const first = await takeDue({ look: 2 });
    expect(first).to.deep.include({ taken: [], more: 1, nextFrom: 2000 });
    const second = await takeDue({ look: 2, from: first.nextFrom });
    expect(second).to.deep.include({ taken: [], more: 1, nextFrom: 3000 });
    const third = await takeDue({ look: 2, from: second.nextFrom });
    expect(third).to.deep.include({ taken: ['d'], more: 1, nextFrom: 4000 });
    const last = await takeDue({ look: 3, from: third.nextFrom });
    expect(last).to.deep.include({ taken: ['e'], more: 0, nextFrom: 5000 });
  });

  it('continues with later batches if more batches share one moment than one call reads', async () => {
    await pending(['a', 1000], ['b', 1000], ['c', 1000]);
    await leaveAlone([
      ['a', 90_000],
      ['b', 90_000],
    ]);
    const first = await takeDue({ look: 2 });
    const second = await takeDue({ look: 2, from: first.nextFrom });
    expect([first.nextFrom, second.nextFrom]).to.deep.equal([1000, 1001]);
  });

  it('takes batches whose time has passed first, and removes batches that have left pending', async () => {
    await pending(['a', 1000], ['b', 2000], ['c', 3000]);
    await sale.redis.zadd(sale.keys.redrives, 1, 'c', 2, 'gone');
    expect((await takeDue({ max: 2 })).taken).to.deep.equal(['c', 'a']);
    expect(await sale.redis.zscore(sale.keys.redrives, 'gone')).to.equal(null);
    expect((await takeDue()).taken).to.deep.equal(['b']);
  });
});
