import { collectDefaultMetrics, Registry } from 'prom-client';
import { createAdmissionMetrics, createRoomMetrics, createWaitingRoomMetrics } from '../../src/admission/metrics.js';
import { createHttpMetrics, createIdentityMetrics } from '../../src/http/metrics.js';
import { SaleAnswers } from '../../src/http/sale-answers.js';
import { createChargeMetrics, createOrderJobMetrics, createWorkerMetrics } from '../../src/orders/metrics.js';
import { createBuildInfo, createJobMetrics, createPoolWaits } from '../../src/process/telemetry.js';
import { createTracingMetrics } from '../../src/process/tracing.js';
import { createPurchaseMetrics, createStatusMetrics } from '../../src/purchase/metrics.js';
import { createActionMetric } from '../../src/operate/findings/jobs.js';
import { createWitnessMetrics } from '../../src/operate/witness/jobs.js';
import { createRecoveryMetrics } from '../../src/recovery/metrics.js';
import { createChannelMetrics, createSignatureMetrics } from '../../src/rocketmq/metrics.js';
import { createSaleMetrics } from '../../src/sales/metrics.js';
import { createWebhookMetrics } from '../../src/operate/webhooks/index.js';
import { createScheduleMetrics } from '../../src/sales/schedule/metrics.js';

/** Fields of every metric that the types of prom-client omit. */
interface Made {
  readonly labelNames: readonly string[];
  get(): Promise<{ readonly name: string; readonly type: string }>;
}

/** Prometheus adds these labels to every scrape, and would rename ours. */
export const OF_PROMETHEUS = ['instance', 'job'];
/** Labels in every metric that name the program. */
const ALWAYS = ['program', ...OF_PROMETHEUS];

/** Returns every metric with its own labels. */
export async function ownLabels(): Promise<Map<string, readonly string[]>> {
  const made = registryOfAll().getMetricsAsArray() as unknown as Made[];
  return new Map(await Promise.all(made.map(async (one) => [(await one.get()).name, one.labelNames] as const)));
}

function registryOfAll(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  createBuildInfo(registry);
  createPurchaseMetrics(registry, () => ({ waiting: 0, inFlight: 0 }));
  createStatusMetrics(registry, () => 0);
  createChargeMetrics(registry);
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
  createWitnessMetrics(registry);
  createActionMetric(registry);
  createSaleMetrics(registry);
  createScheduleMetrics(registry);
  createWebhookMetrics(registry);
  createAdmissionMetrics(registry);
  createSignatureMetrics(registry);
  createRoomMetrics(registry);
  createWaitingRoomMetrics(registry, () => 0);
  createTracingMetrics(registry);
  return registry;
}

/** Returns every published name with its labels, including the names that Prometheus derives from a histogram. */
export async function publishedMetrics(): Promise<Map<string, ReadonlySet<string>>> {
  const published = new Map<string, ReadonlySet<string>>();
  for (const metric of registryOfAll().getMetricsAsArray()) {
    const { name, type } = await (metric as unknown as Made).get();
    const { labelNames } = metric as unknown as Made;
    const labels = [...labelNames, ...ALWAYS];
    published.set(name, new Set(labels));
    if (type !== 'histogram') continue;
    published.delete(name);
    published.set(`${name}_bucket`, new Set([...labels, 'le']));
    for (const end of ['count', 'sum']) published.set(`${name}_${end}`, new Set(labels));
  }
  return published;
}

/** Matches a metric with its filter: `seckill_batches_total{verdict="refused"}`. */
const SELECTED = /\b((?:seckill|process|nodejs)_[a-z0-9_]+)(?:\{([^}]*)\})?/g;
const LABEL = /([a-z_]+)\s*(?:=~|!~|!=|=)/g;

/**
 * Returns the mistakes of an expression: unpublished metrics and missing labels.
 * @param shown labels that are shown from its results
 */
export function mistakesIn(
  expr: string,
  shown: readonly string[],
  published: ReadonlyMap<string, ReadonlySet<string>>,
): string[] {
  const metrics = [...expr.matchAll(SELECTED)].map(([, name = '', selector = '']) => ({ name, selector }));
  const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/,\s*/));
  const isSummed = /\b(?:sum|max|min|avg|count|topk|histogram_quantile)\b/.test(expr);
  const mistakes = metrics.length === 0 ? ['it names no metric'] : [];
  for (const { name, selector } of metrics) {
    const labels = published.get(name);
    if (labels === undefined) {
      mistakes.push(`no program publishes ${name}`);
      continue;
    }
    const narrowedBy = [...selector.matchAll(LABEL)].map(([, label = '']) => label);
    for (const label of [...narrowedBy, ...kept, ...shown]) {
      if (!labels.has(label)) mistakes.push(`${name} has no label ${label}`);
    }
  }
  for (const label of isSummed ? shown : []) if (!kept.includes(label)) mistakes.push(`${label} is summed away`);
  return mistakes;
}

/** Returns the labels that a text shows: `{{sale}}` in a legend, `{{ $labels.sale }}` in an alert. */
export const shownIn = (text: string): string[] =>
  [...text.matchAll(/\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}/g)].map(([, label = '']) => label);
