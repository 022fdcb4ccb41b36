import { z } from 'zod';
import { json, text as textAnswer } from '../answer.js';
import { defineRoute } from '../route.js';
import type { ReadyReport } from '../services.js';
import { text } from '../schemas.js';

/** What machines ask: is it alive, may it get traffic, how is it doing, what does it serve. */

export const healthz = defineRoute({
  method: 'get',
  path: '/healthz',
  label: 'probe',
  operationId: 'healthz',
  summary: 'Is the process alive?',
  access: 'none',
  endpoint: null,
  answers: { 200: { description: 'it is', schema: z.object({ status: z.literal('alive') }) } },
  problems: [],
  handle: () => json(200, 'alive', { status: 'alive' }),
});

const ready = z
  .object({ ready: z.boolean(), dependencies: z.array(z.object({ name: text, ok: z.boolean(), detail: text })) })
  .meta({ id: 'Ready' });

export const readyz = defineRoute({
  method: 'get',
  path: '/readyz',
  label: 'probe',
  operationId: 'readyz',
  summary: 'Should the process get traffic?',
  access: 'none',
  endpoint: null,
  answers: {
    200: { description: 'send traffic', schema: ready },
    503: { description: 'do not, and why', schema: ready },
  },
  problems: [],
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
  summary: 'Metrics for Prometheus.',
  access: 'none',
  endpoint: null,
  answers: { 200: { description: 'the Prometheus text format', type: 'text/plain' } },
  problems: [],
  handle: async (_call, { exposition }) =>
    textAnswer(200, 'served', await exposition(), 'text/plain; version=0.0.4; charset=utf-8'),
});

export const openapi = defineRoute({
  method: 'get',
  path: '/openapi.json',
  label: 'probe',
  operationId: 'openapi',
  summary: 'This document.',
  access: 'none',
  endpoint: null,
  answers: { 200: { description: 'OpenAPI 3.1', schema: z.looseObject({ openapi: text }) } },
  problems: [],
  handle: (_call, { openapi }) => textAnswer(200, 'served', openapi, 'application/json'),
});
