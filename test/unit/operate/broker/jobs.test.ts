import { expect } from 'chai';
import { Registry } from 'prom-client';
import { OperationalError } from '../../../../src/core/errors.js';
import { createRecoveryMetrics, type MessageFigures } from '../../../../src/recovery/metrics.js';
import { watchMessages } from '../../../../src/operate/broker/jobs.js';

const FIGURES: MessageFigures = {
  brokers: [{ down: null }, { down: 'no answer' }],
  held: {
    groups: [
      { group: 'writer', topic: 'purchase', lag: 3, oldestMs: 1500 },
      { group: 'collector', topic: '%DLQ%writer', lag: 2, oldestMs: 70_000 },
      { group: 'coupon', topic: 'order-event', lag: 0, oldestMs: null },
    ],
    halves: { open: 1, oldestMs: 25_000 },
    discarded: 4,
  },
};

describe('keeper: watch-messages', () => {
  let isOurs: boolean;
  let inspect: () => Promise<MessageFigures>;
  let registry: Registry;
  let runOnce: () => Promise<unknown>;
  beforeEach(() => {
    isOurs = true;
    inspect = async () => FIGURES;
    registry = new Registry();
    const keeper = { leases: { hold: async () => isOurs }, owner: 'ann', metrics: createRecoveryMetrics(registry) };
    ({ runOnce } = watchMessages(keeper, () => inspect()));
  });
  const published = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('seckill_mq_'));

  it('publishes nothing before its first read, because 0 would mean that all is well', async () => {
    expect(await published()).to.deep.equal([]);
  });

  it('publishes lags and ages, dead letters, half messages and the number of brokers down', async () => {
    await runOnce();
    expect(await published()).to.deep.equal([
      'seckill_mq_lag{group="writer",topic="purchase"} 3',
      'seckill_mq_lag{group="coupon",topic="order-event"} 0',
      'seckill_mq_oldest_seconds{group="writer",topic="purchase"} 1.5',
      'seckill_mq_oldest_seconds{group="coupon",topic="order-event"} 0',
      'seckill_mq_dlq_depth{topic="%DLQ%writer"} 2',
      'seckill_mq_half_open 1',
      'seckill_mq_half_oldest_seconds 25',
      'seckill_mq_half_discarded 4',
      'seckill_mq_brokers_down 1',
    ]);
  });

  it('publishes only the number of brokers that are down if no broker answers', async () => {
    await runOnce();
    inspect = async () => ({ brokers: [{ down: 'gone' }], held: null });
    await runOnce();
    expect(await published()).to.deep.equal(['seckill_mq_brokers_down 1']);
  });

  it('asks and shows nothing while another keeper has the lease', async () => {
    await runOnce();
    isOurs = false;
    inspect = () => Promise.reject(new Error('asked'));
    await runOnce();
    expect(await published()).to.deep.equal([]);
  });

  it('shows no old figures and fails the run if RocketMQ does not answer', async () => {
    await runOnce();
    const noAnswer = new OperationalError('rocketmq', 'no answer', { retryable: true });
    inspect = () => Promise.reject(noAnswer);
    expect(await runOnce().catch((error: unknown) => error)).to.equal(noAnswer);
    expect(await published()).to.deep.equal([]);
  });
});
