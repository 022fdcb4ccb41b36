import { fileVariable, type Key } from '../../src/core/config/key.js';
import { PROGRAM_SECTIONS, SCHEMA, settingsOf as ofSections, type SectionName } from '../../src/core/config/schema.js';
import { STOP_TIMEOUT_MS } from '../../src/programs/run-program.js';

// Two files of the chart are made from the configuration, so that a setting that does not exist is refused when the chart is
// installed, and each program gets the settings that it reads and no secret of another one. A test compares them.

type AnyKey = Key<string | number>;

/** What the chart decides itself, and what is for tests. */
const FIXED = ['HTTP_HOST', 'PORT', 'OPERATORS_HOST', 'OPERATORS_PORT', 'METRICS_HOST', 'METRICS_PORT', 'NODE_ENV'];
const LEFT_OUT = [...FIXED, 'FAILPOINT', 'TEST_OVERRIDES'];

/** Sections that each container reads: the programs, and the two steps before them. */
const READ: Readonly<Record<string, readonly SectionName[]>> = {
  ...PROGRAM_SECTIONS,
  migrate: ['mysql'],
  topics: ['repair', 'brokerAccess'],
};

function keysOf(sections: readonly SectionName[]): AnyKey[] {
  const keys = ofSections(sections) as AnyKey[];
  const byName = new Map(keys.map((key) => [key.env, key]));
  return [...byName.values()].filter(({ env }) => !LEFT_OUT.includes(env));
}

/** What may stand in the values: no secret, but the path of a file with one. */
const settingsOf = ({ env, secret, fromFile }: AnyKey): string[] => [
  ...(secret ? [] : [env]),
  ...(fromFile ? [fileVariable(env)] : []),
];

/** `templates/_settings.tpl` */
export function settingsTemplate(): string {
  const parts = Object.entries(READ).map(([program, sections]) => {
    const keys = keysOf(sections);
    const plain = keys.flatMap(settingsOf);
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
  const head = `{{- /* Made from src/core/config/schema.ts: npm run generate
Which settings each program reads, and which keys of the Secret; true: without it the program does not start. */ -}}`;
  const stop = `{{- /* After SIGTERM every program has left by then. */ -}}
{{- define "seckill.stopSeconds" -}}${STOP_TIMEOUT_MS / 1000}{{- end }}`;
  return `${[head, ...parts, stop].join('\n\n')}\n`;
}

/** `values.schema.json` */
export function valuesSchema(): object {
  const keys = keysOf(Object.keys(SCHEMA) as SectionName[]);
  const plain = keys.filter(({ secret }) => !secret);
  const settings = Object.fromEntries(
    keys.flatMap((key) => settingsOf(key).map((name) => [name, name === key.env ? ownValue(key) : fileOf(key)])),
  );
  const needed = plain.filter(({ fallback, optional }) => fallback === undefined && !optional).map(({ env }) => env);
  return {
    $schema: 'https://json-schema.org/draft-07/schema#',
    $comment: 'Made from deploy/helm/files.ts: npm run generate',
    ...object({
      global: { type: 'object' },
      nameOverride: text,
      fullnameOverride: text,
      image: object({
        repository: { ...text, minLength: 1 },
        tag: text,
        digest,
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
      }),
      imagePullSecrets: list(named),
      secretName: { ...text, minLength: 1 },
      ...podParts,
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
      migrate: object({
        enabled: flag,
        args: list(text),
        deadlineSeconds: whole(60, 604_800), // to a week
        resources: { type: 'object' },
      }),
      topics: object({ enabled: flag, cluster: { ...text, minLength: 1 } }),
      service: object({
        type: { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
        externalTrafficPolicy: { enum: ['', 'Local', 'Cluster'] },
        annotations: texts,
      }),
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
const digest = { ...text, pattern: '^(sha256:[0-9a-f]{64})?$' } as const;
/** As Kubernetes has them: of all pods, and again of each program. */
const podParts = {
  env: list({ type: 'object' }),
  extraVolumes: list({ type: 'object' }),
  extraVolumeMounts: list({ type: 'object' }),
} as const;
/** What the values of each program have. */
const program = {
  image: object({ tag: text, digest }),
  replicas: whole(0, 1000),
  terminationGracePeriodSeconds: whole(25, 600), // longer than STOP_TIMEOUT_MS of src/programs/run-program.ts
  resources: { type: 'object' },
  ...podParts,
} as const;

const ownValue = (key: AnyKey): object => ({ description: key.doc, ...typeOf(key) });
const fileOf = ({ env }: AnyKey): object => ({
  description: `A file with ${env}, in the place of it: a path below a mount of extraVolumeMounts.`,
  ...text,
  pattern: '^(/.*)?$',
});

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
