import { expect } from 'chai';
import type { RedisConnection } from '../../../src/redis/connection.js';
import { createSaleStore } from '../../../src/redis/sale-store.js';
import { saleOf } from '../../helpers/sales.js';

describe('redis: sale state', () => {
  /** @returns the buckets whose state was set while the server of one bucket is silent, and the thrown error */
  async function setWithout(away: number): Promise<{ set: number[]; thrown: unknown }> {
    const sale = saleOf({ buckets: 3 });
    const set: number[] = [];
    const run = async (_name: string, [key]: readonly string[]): Promise<unknown> => {
      const bucket = Number(/:(\d+)\}/.exec(String(key))?.[1]);
      if (bucket === away) throw new Error('Command timed out');
      set.push(bucket);
      return 'set';
    };
    const store = createSaleStore({ run } as unknown as RedisConnection);
    const thrown = await store.setState(sale, 'closed').catch((error: unknown) => error);
    return { set, thrown };
  }

  it('is set in the buckets of all other servers if one server does not answer', async () => {
    for (const away of [0, 1, 2]) {
      const { set, thrown } = await setWithout(away);
      expect(set).to.have.members([0, 1, 2].filter((bucket) => bucket !== away));
      expect(thrown).to.include({ name: 'OperationalError', dependency: 'redis' });
    }
  });

  it('is removed by UNLINK, because DEL of a large sale would block other calls', async () => {
    const sale = saleOf({ buckets: 2 });
    const asked: string[][] = [];
    const redis = { unlink: async (...keys: string[]) => asked.push(keys) }; // no other command
    await createSaleStore({ redis } as unknown as RedisConnection).forget(sale);
    expect(asked).to.have.length(2);
    for (const [bucket, keys] of asked.entries()) {
      expect(keys).to.include(`sk:{${sale.saleId}:${bucket}}:requests`);
      expect(keys.every((key) => key.startsWith(`sk:{${sale.saleId}:${bucket}}:`))).to.equal(true);
    }
  });
});
