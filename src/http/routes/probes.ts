import { z } from 'zod';
import { alive, isReady, readiness as readinessSchema } from '../../contract/probes.js';
import { text } from '../../contract/fields.js';
import { json, problem, text as textAnswer } from '../answer.js';
import { METRICS_TYPE } from '../metrics-page.js';
import { defineRoute, type Listener } from '../route.js';
import type { ReadyReport } from '../services.js';

/** Answers probes: liveness, readiness, metrics and the OpenAPI document. */

export const healthz = defineRoute({
  method: 'get',
  path: '/healthz',
  label: 'probe',
  operationId: 'healthz',
  summary: 'Tells whether the process is alive.',
  access: 'liveness',
  answers: { 200: { description: 'alive', schema: alive } },
  handle: () => json(200, 'alive', { status: 'alive' }),
});

/**
 * Every client of the buyer listener can read this answer, so it names neither servers nor reasons. Prometheus gets a
 * page in its own format, so that a scrape through a proxy tells whether buyers reach an api that can sell.
 */
export const readyz = defineRoute({
  method: 'get',
  path: '/readyz',
  label: 'probe',
  operationId: 'readyz',
  summary: 'Tells load balancers whether to send buyers here. The api stays ready while only MySQL is down.',
  access: 'none',
  answers: {
    200: { description: 'ready', schema: isReady, type: 'text/plain' },
    503: { description: 'not ready', schema: isReady },
  },
  async handle({ req }, { lifecycle, isReady }) {
    const ready = !lifecycle.draining && (await isReady());
    if (ready && req.headers.accept?.includes(PROMETHEUS) === true) {
      return textAnswer(200, 'ready', '# ready\n', METRICS_TYPE);
    }
    return ready ? json(200, 'ready', { ready }) : json(503, 'not_ready', { ready });
  },
});

/** Every version of Prometheus accepts this type. */
const PROMETHEUS = 'text/plain;version=0.0.4';

export const readiness = defineRoute({
  method: 'get',
  path: '/readyz',
  label: 'probe',
  operationId: 'readiness',
  summary: 'Tells whether the process is ready, with the state of each dependency.',
  access: 'monitoring',
  answers: {
    200: { description: 'ready', schema: readinessSchema },
    503: { description: 'not ready, with the reasons', schema: readinessSchema },
  },
  async handle(_call, services) {
    const report = services.lifecycle.draining ? DRAINING : await services.ready();
    return report.ready ? json(200, 'ready', report) : json(503, 'not_ready', report);
  },
});

const DRAINING: ReadyReport = {
  ready: false,
  dependencies: [{ name: 'api', ok: false, detail: 'this process is shutting down' }],
};

export const metrics = defineRoute({
  method: 'get',
  path: '/metrics',
  label: 'probe',
  operationId: 'metrics',
  summary: 'Returns metrics for Prometheus. Needs METRICS_TOKEN as the bearer token if it is set.',
  access: 'monitoring',
  answers: { 200: { description: 'the Prometheus text format', type: 'text/plain' } },
  problems: ['unauthorized'],
  async handle({ req }, { metricsPage }) {
    if (!metricsPage.isFor(req.headers.authorization)) {
      return problem('unauthorized', { detail: 'Send the METRICS_TOKEN of this program as the bearer token.' }, [
        'WWW-Authenticate',
        'Bearer',
      ]);
    }
    return textAnswer(200, 'served', await metricsPage.read(), METRICS_TYPE);
  },
});

const openapiOf = (listener: Listener, summary: string) =>
  defineRoute({
    method: 'get',
    path: `/openapi/${listener}.json`,
    label: 'probe',
    operationId: `openapi_${listener}`,
    summary,
    access: 'monitoring',
    answers: { 200: { description: 'OpenAPI 3.1', schema: z.looseObject({ openapi: text }) } },
    handle: (_call, { openapi }) => textAnswer(200, 'served', openapi(listener), 'application/json'),
  });

export const openapiDocuments = [
  openapiOf('buyers', 'Returns the OpenAPI document of the routes for buyers and the payment provider.'),
  openapiOf('operators', 'Returns this OpenAPI document.'),
];
