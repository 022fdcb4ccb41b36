import { expect } from 'chai';
import { useFakeTimers, type SinonFakeTimers } from 'sinon';
import { Shelf } from '../../../src/chaos/harness/shelve-sales.js';
import type { StackHands } from '../../../src/chaos/harness/stack-hands.js';
import { saleOf } from '../../helpers/sales.js';

describe('shelf', () => {
  let clock: SinonFakeTimers;
  beforeEach(() => (clock = useFakeTimers({ toFake: ['performance'] })));
  afterEach(() => clock.restore());

  it('sales of a row that is over stay where check-backs find them, for a minute', async () => {
    const ended: unknown[] = [];
    const removed: string[] = [];
    const stack = {
      mysql: { query: async (_sql: string, [ids]: [string[]]) => void ended.push(...ids) },
      redis: { redis: { unlink: async (...keys: string[]) => void removed.push(...keys) } },
    } as unknown as StackHands;
    const shelf = new Shelf(stack);
    const [first, second] = [saleOf({ buckets: 2 }), saleOf()];
    shelf.put([first]);
    clock.tick(30_000);
    shelf.put([second]);
    clock.tick(29_999);
    await shelf.tidy();
    expect([ended, removed]).to.deep.equal([[], []]);
    clock.tick(1);
    await shelf.tidy();
    await shelf.tidy();
    expect(ended).to.deep.equal([first.saleId]);
    expect(new Set(removed.map((key) => /\{.*\}/.exec(key)?.[0])).size, 'both buckets').to.equal(2);
  });
});
