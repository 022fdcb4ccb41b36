import { expect } from 'chai';
import { isGivenUp } from '../chaos/harness/broker.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { recordBatch, statesOf } from '../chaos/harness/batches.js';
import { Matrix, shelveSales } from '../chaos/run-suite.js';
import { until } from '../chaos/harness/wait.js';
import type { Row } from '../chaos/scenario.js';
import { newBatchId, sealBatch } from '../../src/core/batch.js';
import { TOPICS } from '../../src/core/topics.js';
import { silentChannelMetrics } from '../../src/core/ports/channel-metrics.js';
import { silentLog } from '../../src/core/ports/log.js';
import { createPurchaseChannel } from '../../src/rocketmq/purchase-channel.js';
import { producersOf } from '../../src/rocketmq/admin/broker-state.js';
import { useSystem } from '../helpers/system.js';

describe('what a row of the matrix leaves behind', () => {
  let living: Program;
  const system = useSystem(async ({ programs }) => {
    living = await programs.start('api');
  });

  /** Whether the broker would ask this process. */
  async function isKnown({ pid }: Program): Promise<boolean> {
    const broker = { host: '127.0.0.1', port: system.stack.servers.ports.broker };
    return (await producersOf(broker, TOPICS.purchase)).some((id) => id.includes(`@${pid}@`));
  }

  /** A row as the matrix runs it, with this fault. */
  async function expectGreen(run: Row['run'], parts: Partial<Row> = {}): Promise<void> {
    const { stack } = system;
    const matrix = new Matrix({
      ...{ stack, env: { ...process.env, ...stack.env }, jobs: 1, signal: new AbortController().signal },
    });
    const row: Row = { id: 'T1', title: 'a test', fast: true, alone: false, books: 'none', run, ...parts };
    expect(await matrix.runOne(row, 1)).to.include({ outcome: 'green', reason: null });
  }

  it('an api that a row killed is on the list of the broker until the row is over; one that lives stays', async () => {
    await until('the living one is known', () => isKnown(living));
    let killed = living;
    await expectGreen(async (arena) => {
      killed = await arena.start('api');
      await arena.until('the other one is known', () => isKnown(killed));
      await killed.crash();
      await arena.bite('the broker would still ask it', () => isKnown(killed));
      arena.faultEnded();
    });
    expect(await isKnown(killed), 'off the list').to.equal(false);
    expect(await isKnown(living), 'the living one').to.equal(true);
  });

  it('a half message that nobody can answer is given up before a row begins to which it matters', async () => {
    const abandoned = sealBatch({
      ...{ batchId: newBatchId(), saleId: '0', bucket: 0, epoch: 1, createdAtMs: Date.now(), trace: '' },
      purchases: [{ userId: 'nobody', requestId: 'k1', quantity: 1 }],
    });
    const channel = await createPurchaseChannel({
      ...{ endpoint: system.stack.env.ROCKETMQ_ENDPOINT, requestTimeoutMs: 10_000, log: silentLog },
      ...{ checkBack: () => Promise.resolve('no_answer'), checksInParallel: 1, metrics: silentChannelMetrics },
    });
    expect(await channel.sendHalf(abandoned)).to.be.an('object');
    await channel.close();
    const isGone = (): Promise<boolean> => isGivenUp(system.stack, abandoned.batchId);
    expect(await isGone(), 'before it').to.equal(false);
    const fault: Row['run'] = async (arena) => {
      await arena.bite('nobody will be asked', isGone, 1000);
      arena.faultEnded();
    };
    await expectGreen(fault, { drained: true });
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
