import { expect } from 'chai';
import { forgetProducers } from '../../src/chaos/harness/dead-producers.js';
import { isGivenUp } from '../../src/chaos/harness/half-messages.js';
import { drainHalfMessages } from '../../src/chaos/harness/open-halves.js';
import { openSale } from '../../src/chaos/harness/open-sale.js';
import type { Program } from '../../src/chaos/harness/programs.js';
import { recordBatch } from '../../src/chaos/harness/recorded-batch.js';
import { shelveSales } from '../../src/chaos/harness/shelve-sales.js';
import { statesOf } from '../../src/chaos/harness/unpaid-orders.js';
import { until } from '../../src/chaos/harness/until.js';
import { newBatchId, sealBatch } from '../../src/domain/batch.js';
import { TOPICS } from '../../src/domain/topics.js';
import { silentChannelMeters } from '../../src/ports/channel-meters.js';
import { silentLog } from '../../src/ports/log.js';
import { createPurchaseChannel } from '../../src/rocketmq/purchase-channel.js';
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
    await forgetProducers(system.stack, [killed.pid]);
    expect(await isKnown(killed), 'off the list').to.equal(false);
    expect(await isKnown(living), 'the other one').to.equal(true);
  });

  it('a half message that nobody can answer is given up when half messages are drained', async () => {
    const abandoned = sealBatch({
      ...{ batchId: newBatchId(), saleId: '0', bucket: 0, epoch: 1, createdAtMs: Date.now(), trace: '' },
      purchases: [{ userId: 'nobody', requestId: 'k1', quantity: 1 }],
    });
    const channel = await createPurchaseChannel({
      ...{ endpoint: system.stack.env.ROCKETMQ_ENDPOINT, requestTimeoutMs: 10_000, log: silentLog },
      ...{ checkBack: () => Promise.resolve('no_answer'), checksInParallel: 1, meters: silentChannelMeters },
    });
    expect(await channel.sendHalf(abandoned)).to.be.an('object');
    await channel.close();
    await drainHalfMessages(system.stack);
    expect(await isGivenUp(system.stack, abandoned.batchId)).to.equal(true);
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
