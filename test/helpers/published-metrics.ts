import { collectDefaultMetrics, Registry } from 'prom-client';
import { createAdmissionMetrics, createWaitingRoomMetrics } from '../../src/admission/metrics.js';
import { createHttpMetrics, createIdentityMetrics } from '../../src/http/metrics.js';
import { SaleAnswers } from '../../src/http/sale-answers.js';
import { createOrderJobMetrics, createWorkerMetrics } from '../../src/orders/metrics.js';
import { createJobMetrics, createPoolWaits } from '../../src/programs/telemetry.js';
import { createPurchaseMetrics, createStatusMetrics } from '../../src/purchase/metrics.js';
import { createRecoveryMetrics } from '../../src/recovery/metrics.js';
import { createChannelMetrics, createSignatureMetrics } from '../../src/rocketmq/metrics.js';
import { createSaleMetrics } from '../../src/sales/metrics.js';
import { createScheduleMetrics } from '../../src/sales/schedule/metrics.js';

/** Every name that a program publishes, those that Prometheus makes of a histogram among them. */
export async function publishedMetrics(): Promise<Set<string>> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  createPurchaseMetrics(registry, () => ({ waiting: 0, inFlight: 0 }));
  createStatusMetrics(registry, () => 0);
  createChannelMetrics(registry);
  createHttpMetrics(registry);
  new SaleAnswers(
    registry,
    () => true,
    () => 0,
  );
  createIdentityMetrics(registry);
  createWorkerMetrics(registry);
  createJobMetrics(registry);
  createPoolWaits(registry);
  createOrderJobMetrics(registry);
  createRecoveryMetrics(registry);
  createSaleMetrics(registry);
  createScheduleMetrics(registry);
  createAdmissionMetrics(registry);
  createSignatureMetrics(registry);
  createWaitingRoomMetrics(registry, () => 0);
  const metrics = await registry.getMetricsAsJSON();
  return new Set(
    metrics.flatMap(({ name, type }) =>
      String(type) === 'histogram' ? ['_bucket', '_count', '_sum'].map((end) => `${name}${end}`) : [name],
    ),
  );
}
