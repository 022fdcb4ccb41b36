import type { Key } from '../../src/core/config/key.js';
import { PROGRAM_SECTIONS, SCHEMA, type SectionName } from '../../src/core/config/schema.js';

// Two files of the chart are made from the configuration, so that a setting that does not exist is refused when the chart is
// installed, and each program gets the settings that it reads and no secret of another one. A test compares them.

/** The command that writes them anew. */
export const UPDATE_COMMAND = 'UPDATE_CHART=1 npx mocha test/guard/helm-chart.test.ts';

type AnyKey = Key<string | number>;

/** What the chart decides itself, and what is for tests. */
const FIXED = ['HTTP_HOST', 'PORT', 'OPERATORS_HOST', 'OPERATORS_PORT', 'METRICS_HOST', 'METRICS_PORT', 'NODE_ENV'];
const LEFT_OUT = [...FIXED, 'FAILPOINT', 'FAILPOINT_DO'];

/** Sections that each container reads: the programs, and the two steps before them. */
const READ: Readonly<Record<string, readonly SectionName[]>> = {
  ...PROGRAM_SECTIONS,
  migrate: ['mysql'],
  topics: ['repair', 'brokerAccess'],
};

function keysOf(sections: readonly SectionName[]): AnyKey[] {
  const keys = sections.flatMap((name) => Object.values(SCHEMA[name]) as AnyKey[]);
  const byName = new Map(keys.map((key) => [key.env, key]));
  return [...byName.values()].filter(({ env }) => !LEFT_OUT.includes(env));
}

/** `templates/_settings.tpl` */
export function settingsTemplate(): string {
  const parts = Object.entries(READ).map(([program, sections]) => {
    const keys = keysOf(sections);
    const plain = keys.filter(({ secret }) => !secret).map(({ env }) => env);
    const secret = keys.filter((key) => key.secret).map((key) => [key.env, !key.optional] as const);
    return [
      `{{- define "seckill.settingsOf.${program}" -}}`,
      JSON.stringify(plain, null, 2),
      '{{- end }}',
      '',
      `{{- define "seckill.secretsOf.${program}" -}}`,
      JSON.stringify(Object.fromEntries(secret), null, 2),
      '{{- end }}',
    ].join('\n');
  });
  const head = `{{- /* Made from src/core/config/schema.ts: ${UPDATE_COMMAND}
Which settings each program reads, and which keys of the Secret; true: without it the program does not start. */ -}}`;
  return `${[head, ...parts].join('\n\n')}\n`;
}

/** `values.schema.json` */
export function valuesSchema(): object {
  const keys = keysOf(Object.keys(SCHEMA) as SectionName[]).filter(({ secret }) => !secret);
  const settings = Object.fromEntries(keys.map((key) => [key.env, { description: key.doc, ...typeOf(key) }]));
  const needed = keys.filter(({ fallback, optional }) => fallback === undefined && !optional).map(({ env }) => env);
  return {
    $schema: 'https://json-schema.org/draft-07/schema#',
    $comment: `Made from deploy/helm/files.ts: ${UPDATE_COMMAND}`,
    ...object({
      global: { type: 'object' },
      nameOverride: text,
      fullnameOverride: text,
      image: object({
        repository: { ...text, minLength: 1 },
        tag: text,
        digest: { ...text, pattern: '^(sha256:[0-9a-f]{64})?$' },
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
      }),
      imagePullSecrets: list(named),
      secretName: { ...text, minLength: 1 },
      settings: { ...object(settings), required: [...needed, 'NAMESRV_ADDR'] },
      api: object({
        ...program,
        preStopSeconds: whole(0, 60),
        autoscaling: object({
          enabled: flag,
          minReplicas: whole(1, 1000),
          maxReplicas: whole(1, 1000),
          targetCPUUtilizationPercentage: whole(10, 95),
        }),
      }),
      worker: object(program),
      keeper: object(program),
      migrate: object({ enabled: flag, resources: { type: 'object' } }),
      topics: object({ enabled: flag, cluster: { ...text, minLength: 1 } }),
      service: object({ type: { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] }, annotations: texts }),
      ingress: object({ enabled: flag, className: text, annotations: texts, host: text, tlsSecretName: text }),
      podMonitor: object({
        enabled: flag,
        labels: texts,
        interval: { ...text, pattern: '^[0-9]+(ms|s|m)$' },
        useToken: flag,
      }),
      networkPolicy: object({
        enabled: flag,
        buyersFrom: list({ type: 'object' }),
        operatorsFrom: list({ type: 'object' }),
        monitoringFrom: list({ type: 'object' }),
        serverPorts: list(whole(1, 65535)),
        serversTo: list({ type: 'object' }),
        webPorts: list(whole(1, 65535)),
      }),
      podDisruptionBudget: object({ enabled: flag, maxUnavailable: whole(1, 1000) }),
      podAnnotations: texts,
      podLabels: texts,
      nodeSelector: texts,
      tolerations: list({ type: 'object' }),
      affinity: { type: 'object' },
    }),
  };
}

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const texts = { type: 'object', additionalProperties: { type: 'string' } } as const;
const whole = (minimum: number, maximum: number): object => ({ type: 'integer', minimum, maximum });
const list = (items: object): object => ({ type: 'array', items });
const object = (properties: Readonly<Record<string, object>>): object => ({
  type: 'object',
  additionalProperties: false,
  properties,
});
const named = { type: 'object', additionalProperties: false, properties: { name: text }, required: ['name'] } as const;
/** What the values of each program have. */
const program = {
  replicas: whole(0, 1000),
  terminationGracePeriodSeconds: whole(25, 600), // longer than STOP_TIMEOUT_MS of src/programs/run-program.ts
  resources: { type: 'object' },
  env: list({ type: 'object' }),
} as const;

function typeOf({ words, fallback, range }: AnyKey): object {
  if (words !== undefined) return { enum: words };
  if (typeof fallback !== 'number') return text;
  const [, minimum = '', maximum = ''] = /^(\d+) to (\d+)$/.exec(range) ?? [];
  return {
    type: Number.isInteger(fallback) ? 'integer' : 'number',
    minimum: Number(minimum),
    maximum: Number(maximum),
  };
}
