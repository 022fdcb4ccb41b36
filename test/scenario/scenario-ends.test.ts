import { Registry } from 'prom-client';
import { expect } from 'chai';
import { createChannelMetrics } from '../../src/rocketmq/metrics.js';
import { adminPortOf, brokerOf } from '../helpers/broker.js';
import { signaturesOf } from '../helpers/signatures.js';
import { silentLog } from '../helpers/silent-log.js';
import { TOPICS } from '../../src/core/topics.js';
import { producersOf } from '../helpers/producers-of.js';
import { createPurchaseChannel } from '../../src/rocketmq/purchase-channel.js';
import { batchOf, recordBatch } from '../chaos/harness/batches.js';
import { isGivenUp } from '../chaos/harness/broker.js';
import type { Program } from '../chaos/harness/programs.js';
import { statesOf } from '../chaos/harness/sale-state.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { retireSales, SuiteRun } from '../chaos/run-suite.js';
import type { Scenario } from '../chaos/scenario.js';
import { useSystem } from '../helpers/system.js';

describe('what a chaos scenario leaves behind', () => {
  let living: Program;
  const system = useSystem(async ({ programs }) => {
    living = await programs.start('api');
  });

  /** Whether the broker would send this process check-backs. */
  async function isKnown({ pid }: Program): Promise<boolean> {
    const broker = adminPortOf(system.stack.servers);
    return (await producersOf(broker, TOPICS.purchase)).some((id) => id.includes(`@${pid}@`));
  }

  async function expectGreen(run: Scenario['run'], parts: Partial<Scenario> = {}): Promise<void> {
    const { stack } = system;
    const { signal } = new AbortController();
    const suite = new SuiteRun({ stack, env: { ...process.env, ...stack.env }, jobs: 1, signal });
    const scenario: Scenario = { name: 'T1', title: 'a test', noSale: true, run, ...parts };
    expect(await suite.runOne(scenario, 1)).to.include({ outcome: 'green', reason: null });
  }

  it('the broker forgets an api that a scenario killed once it is over, and keeps one that lives', async () => {
    await until('the living one is known', () => isKnown(living));
    let killed = living;
    await expectGreen(async (context) => {
      killed = await context.start('api');
      await context.until('the other one is known', () => isKnown(killed));
      await killed.crash();
      await context.observed('the broker would still ask it', () => isKnown(killed));
      context.faultEnded();
    });
    expect(await isKnown(killed), 'the killed one').to.equal(false);
    expect(await isKnown(living), 'the living one').to.equal(true);
  });

  it('a half message that no producer can answer is given up before a scenario that it would disturb', async () => {
    const abandoned = batchOf('0', ['nobody']);
    const channel = await createPurchaseChannel({
      ...brokerOf(system.stack.env),
      requestTimeoutMs: 10_000,
      signatures: signaturesOf(system.stack.env),
      log: silentLog,
      checkBack: () => Promise.resolve('no_answer'),
      checksInParallel: 1,
      metrics: createChannelMetrics(new Registry()),
    });
    expect(await channel.sendHalf(abandoned)).to.be.an('object');
    await channel.close();
    const isGone = (): Promise<boolean> => isGivenUp(system.stack, abandoned.batchId);
    expect(await isGone(), 'before it').to.equal(false);
    const run: Scenario['run'] = async (context) => {
      await context.observed('it is given up', isGone);
      context.faultEnded();
    };
    await expectGreen(run, { drainFirst: true });
  });

  it('no order of a retired sale falls due, and those of others do', async () => {
    const { stack } = system;
    const [retired, other] = [await openSale(stack), await openSale(stack)];
    for (const { saleId } of [retired, other]) await recordBatch(stack, saleId, 3);
    await retireSales(stack, [retired]);
    expect(await statesOf(stack, retired.saleId)).to.deep.equal({ expired: 3 });
    expect(await statesOf(stack, other.saleId)).to.deep.equal({ pending_payment: 3 });
  });
});
