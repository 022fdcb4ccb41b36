import { expect } from 'chai';
import { forgetDeadProducers } from '../../src/chaos/harness/dead-producers.js';
import { openSale } from '../../src/chaos/harness/open-sale.js';
import type { Program } from '../../src/chaos/harness/programs.js';
import { recordBatch } from '../../src/chaos/harness/recorded-batch.js';
import { shelveSales } from '../../src/chaos/harness/shelve-sales.js';
import { statesOf } from '../../src/chaos/harness/unpaid-orders.js';
import { until } from '../../src/chaos/harness/until.js';
import { TOPICS } from '../../src/domain/topics.js';
import { producersOf } from '../../src/stack/broker-state.js';
import { useSystem } from '../helpers/system.js';

describe('what a row of the matrix leaves behind', () => {
  let killed: Program;
  let living: Program;
  const system = useSystem(async ({ programs }) => {
    [killed, living] = await Promise.all([programs.start('api'), programs.start('api')]);
  });

  /** Whether the broker would ask this process. */
  async function isKnown({ pid }: Program): Promise<boolean> {
    const broker = { host: '127.0.0.1', port: system.stack.servers.ports.broker };
    return (await producersOf(broker, TOPICS.purchase)).some((id) => id.includes(`@${pid}@`));
  }

  it('an api that was killed is on the list of the broker until it is taken off; one that lives stays', async () => {
    await until('both are known', async () => (await isKnown(killed)) && (await isKnown(living)));
    await killed.crash();
    expect(await isKnown(killed), 'after kill -9').to.equal(true);
    await forgetDeadProducers(system.stack);
    expect(await isKnown(killed), 'off the list').to.equal(false);
    expect(await isKnown(living), 'the other one').to.equal(true);
  });

  it('no order of a shelved sale falls due, and those of others do', async () => {
    const { stack } = system;
    const [shelved, other] = [await openSale(stack), await openSale(stack)];
    for (const { saleId } of [shelved, other]) await recordBatch(stack, saleId, 3);
    await shelveSales(stack, [shelved]);
    expect(await statesOf(stack, shelved.saleId)).to.deep.equal({ expired: 3 });
    expect(await statesOf(stack, other.saleId)).to.deep.equal({ pending_payment: 3 });
  });
});
