import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { sealBatch } from '../../src/core/batch.js';
import { purchaseOf } from '../helpers/sales.js';
import type { TraceBroker } from '../../src/rocketmq/admin/trace-broker.js';
import { createTraceBroker } from '../../src/rocketmq/admin/trace-broker.js';
import { accessIn } from '../helpers/broker.js';
import { stackEnv } from '../helpers/stack-env.js';
import { found } from '../chaos/harness/wait.js';
import { freshBatch, rocketmqWorld } from './broker-worlds.js';
import { useWorld } from './on-each-world.js';

describe('trace broker', () => {
  const world = useWorld(rocketmqWorld);

  it('finds half, committed and republished messages of a batch, but none of another batch', async () => {
    const broker = createTraceBroker(stackEnv().NAMESRV_ADDR, accessIn(stackEnv()));
    const channel = await world.purchaseChannel(async () => 'no_answer');
    const redrives = await world.redriveChannel();
    const [batch, other] = [freshBatch(), freshBatch()];
    const startMs = Date.now() - 5_000;
    const half = await channel.sendHalf(batch);
    if (typeof half === 'string') throw new Error(`the half message: ${half}`);
    // The broker indexes its log with a delay.
    const kinds = (wanted: number) =>
      found(`${wanted} messages`, async () => {
        const { found: messages, silent } = await broker.messagesOf(batch.batchId);
        expect(silent).to.deep.equal([]);
        for (const { storedAtMs } of messages) expect(storedAtMs).to.be.within(startMs, Date.now() + 5_000);
        return messages.length === wanted ? messages.map(({ kind }) => kind) : null;
      });
    expect(await kinds(1)).to.deep.equal(['half']);
    await half.commit();
    await redrives.publish(batch);
    expect(await kinds(3)).to.deep.equal(['half', 'committed', 'redriven']);
    expect(await broker.messagesOf(other.batchId)).to.deep.equal({ found: [], silent: [] });
  });

  it('finds a half message by the trace ids of its purchases, even after a rollback', async () => {
    const broker = createTraceBroker(stackEnv().NAMESRV_ADDR, accessIn(stackEnv()));
    const channel = await world.purchaseChannel(async () => 'no_answer');
    const traceIds = Array.from({ length: 20 }, () => randomBytes(16).toString('hex'));
    const purchases = traceIds.map((traceId, index) => ({ ...purchaseOf(`u${index}`), traceId }));
    const batch = sealBatch({ ...freshBatch(), purchases });
    const half = await channel.sendHalf(batch);
    if (typeof half === 'string') throw new Error(`the half message: ${half}`);
    expect(await half.rollback()).to.equal(true);
    // The broker indexes its log with a delay.
    const bodies = await found('the half message', async () => {
      const halves = (await broker.halvesOf(traceIds[15] as string)).found;
      return halves.length > 0 ? halves : null;
    });
    expect(bodies).to.deep.equal([batch.body]);
    expect((await broker.halvesOf(traceIds[0] as string)).found).to.deep.equal([batch.body]);
    expect((await broker.halvesOf(traceIds[16] as string)).found, 'sixteen are keys').to.deep.equal([]);
    expect((await broker.messagesOf(batch.batchId)).found.map(({ kind }) => kind)).to.deep.equal(['half']);
  });

  it('fails if no name server answers or the cluster has another name, and tries a second name server', async () => {
    const { NAMESRV_ADDR, ...env } = stackEnv();
    const access = accessIn(env);
    const failure = (broker: TraceBroker): Promise<string> =>
      broker.messagesOf('b1').then(
        () => 'an answer',
        (error: Error) => error.message,
      );
    expect(await failure(createTraceBroker('127.0.0.1:1', null))).to.contain('ECONNREFUSED');
    const elsewhere = createTraceBroker(NAMESRV_ADDR, access, { cluster: 'elsewhere' });
    expect(await failure(elsewhere)).to.contain('no broker');
    expect(await failure(createTraceBroker(`127.0.0.1:1;${NAMESRV_ADDR}`, access))).to.equal('an answer');
  });
});
