import { expect } from 'chai';
import { OperationalError } from '../../src/core/errors.js';
import type { Delivery, DeliverySource } from '../../src/core/ports/channels.js';
import { createWorkerProgress } from '../../src/rocketmq/admin/worker-progress.js';
import { until } from '../chaos/harness/wait.js';
import { accessIn } from '../helpers/broker.js';
import { stackEnv } from '../helpers/stack-env.js';
import { BROKER_WORLDS, freshBatch, REDRIVES_COUNTED, type BrokerWorld } from './broker-worlds.js';
import { onEachWorld } from './on-each-world.js';

onEachWorld<BrokerWorld>('contract WorkerProgress', BROKER_WORLDS, (world) => {
  let source: DeliverySource;
  before(async () => {
    source = await world.source(REDRIVES_COUNTED.topic, REDRIVES_COUNTED.group);
  });

  it('reports whether all messages up to a moment were delivered to a worker, even without acks', async () => {
    const channel = await world.redriveChannel();
    const progress = world.progress([REDRIVES_COUNTED]);
    const batches = [freshBatch(), freshBatch(), freshBatch()];
    for (const batch of batches) await channel.publish(batch);
    const ends = await progress.ends();
    expect(await progress.haveReceived(ends), 'before anybody has asked for them').to.equal(false);
    const saleIds = batches.map(({ saleId }) => saleId);
    expect([...((await progress.unreceivedSales(ends)) ?? [])]).to.include.members(saleIds);

    const given: Delivery[] = [];
    const receive = async (): Promise<boolean> => {
      given.push(...(await source.receive(32)));
      return progress.haveReceived(ends);
    };
    await until('all were given', receive); // Receives in any order, without an ack.
    expect(await progress.unreceivedSales(ends)).to.deep.equal(new Set());
    await Promise.all(given.map((delivery) => delivery.ack()));

    await channel.publish(freshBatch());
    expect(await progress.haveReceived(ends), 'later messages do not count').to.equal(true);
    expect(await progress.haveReceived(await progress.ends())).to.equal(false);
  });
});

describe('WorkerProgress on rocketmq', () => {
  it('asks the next name server if the first does not answer', async () => {
    const env = stackEnv();
    const progress = createWorkerProgress(`127.0.0.1:1;${env.NAMESRV_ADDR}`, accessIn(env));
    expect((await progress.ends()).size).to.be.above(0);
  });

  it('fails when no server answers', async () => {
    const error = await createWorkerProgress('127.0.0.1:1', null)
      .ends()
      .catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'rocketmq' });
  });
});
