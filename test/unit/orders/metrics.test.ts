import { expect } from 'chai';
import { Registry } from 'prom-client';
import { createWorkerMetrics } from '../../../src/orders/metrics.js';

describe('worker metrics', () => {
  it('exports the counter of purchases in time (5 s) from the start', async () => {
    const registry = new Registry();
    const metrics = createWorkerMetrics(registry);
    const lines = async (): Promise<string[]> =>
      (await registry.metrics()).split('\n').filter((line) => /^seckill_recorded_(?:in_time_)?purchases/.test(line));
    expect(await lines()).to.have.members([
      'seckill_recorded_purchases_total{verdict="recorded"} 0',
      'seckill_recorded_in_time_purchases_total 0',
    ]);
    metrics.recorded(100, 5000);
    metrics.recorded(7, 5001);
    metrics.delivered('recorded', 107);
    expect(await lines()).to.have.members([
      'seckill_recorded_purchases_total{verdict="recorded"} 107',
      'seckill_recorded_in_time_purchases_total 100',
    ]);
  });
});
