import type { FieldError, Json, JsonObject } from '../api/types.js';
import { isSame, valueAt, withValue } from './diff.js';

/** How a value of the rules is edited. Its path is the path in the document: `limits.purchase.user`. */
export type RuleField =
  | { readonly kind: 'choice'; readonly path: string; readonly options: readonly string[] }
  | {
      readonly kind: 'number';
      readonly path: string;
      readonly min: number;
      readonly max: number;
      readonly whole: boolean;
      /** True if the value may be null, which means no value. */
      readonly nullable: boolean;
    }
  /** A list of texts, with a text per line. */
  | { readonly kind: 'lines'; readonly path: string; readonly most: number }
  /** Some of these options, at least one. */
  | { readonly kind: 'some'; readonly path: string; readonly options: readonly number[] }
  /** `all`, or a list of sales. */
  | { readonly kind: 'sales'; readonly path: string }
  /** Null, or an object of further fields. */
  | {
      readonly kind: 'optional';
      readonly path: string;
      readonly initial: JsonObject;
      readonly fields: readonly RuleField[];
    };

export const LAYERS = ['lists', 'limits', 'breaker', 'degrade', 'sign', 'queue', 'orders'] as const;
export type Layer = (typeof LAYERS)[number];

const MODES = ['off', 'dry_run', 'on'];
const LEVELS = ['L0', 'L1', 'L2', 'L3', 'L4'];
const ALL_OR_NOTHING = ['L0', 'L4'];
const WHEN_DOWN = ['refuse', 'allow'];
const ENDPOINTS = ['purchase', 'status', 'sale', 'order'];
const DAY_MS = 86_400_000;
const DEPENDENCIES = { redis: 'Redis', rocketmq: 'RocketMQ', mysql: 'MySQL' } as const;

const choice = (path: string, options: readonly string[]): RuleField => ({ kind: 'choice', path, options });
const whole = (path: string, min: number, max: number, nullable = false): RuleField => ({
  kind: 'number',
  path,
  min,
  max,
  whole: true,
  nullable,
});
const real = (path: string, min: number, max: number): RuleField => ({
  kind: 'number',
  path,
  min,
  max,
  whole: false,
  nullable: false,
});
const lines = (path: string, most: number): RuleField => ({ kind: 'lines', path, most });
const sales = (path: string): RuleField => ({ kind: 'sales', path });
const optional = (path: string, initial: JsonObject, ...fields: RuleField[]): RuleField => ({
  kind: 'optional',
  path,
  initial,
  fields,
});

const bucketLimit = (path: string): RuleField =>
  optional(
    path,
    { ratePerSecond: 1000, burst: 2000 },
    whole(`${path}.ratePerSecond`, 1, 1_000_000),
    whole(`${path}.burst`, 1, 1_000_000),
  );
const windowLimit = (path: string): RuleField =>
  optional(
    path,
    { limit: 10, windowMs: 10_000 },
    whole(`${path}.limit`, 1, 1_000_000),
    whole(`${path}.windowMs`, 100, DAY_MS),
  );

/** Fields for every value of the rules. The schemas of the API have the final say, and a test compares the two. */
export const RULE_FIELDS: Readonly<Record<Layer, readonly RuleField[]>> = {
  lists: [
    choice('lists.mode', MODES),
    ...(['addresses', 'agents', 'users'] as const).flatMap((list) =>
      ['allow', 'deny'].map((way) => lines(`lists.${list}.${way}`, list === 'agents' ? 100 : 10_000)),
    ),
  ],
  limits: [
    choice('limits.mode', MODES),
    ...ENDPOINTS.flatMap((endpoint) => [
      bucketLimit(`limits.${endpoint}.global`),
      windowLimit(`limits.${endpoint}.user`),
      windowLimit(`limits.${endpoint}.ip`),
      whole(`limits.${endpoint}.subjectsMax`, 100, 1_000_000),
    ]),
    optional(
      'limits.leaky',
      { ratePerSecond: 1000, waitMaxMs: 1000 },
      whole('limits.leaky.ratePerSecond', 1, 1_000_000),
      whole('limits.leaky.waitMaxMs', 0, 5_000),
    ),
    whole('limits.replyTimeoutMs', 5, 5_000),
    whole('limits.retryEveryMs', 50, 60_000),
    whole('limits.processes', 0, 1_000),
  ],
  breaker: [
    choice('breaker.mode', MODES),
    whole('breaker.windowMs', 1_000, 600_000),
    whole('breaker.callsMin', 1, 1_000_000),
    real('breaker.openAt', 0, 1),
    real('breaker.weights.rate', 0, 1),
    real('breaker.weights.failures', 0, 1),
    real('breaker.weights.latency', 0, 1),
    real('breaker.rate.ramp.from', 1, 1_000),
    real('breaker.rate.ramp.to', 1, 1_000),
    real('breaker.rate.floorPerSecond', 1, 1_000_000),
    whole('breaker.rate.halfLifeMs', 1_000, DAY_MS),
    whole('breaker.rate.warmUpMs', 0, 3_600_000),
    real('breaker.failures.from', 0, 1),
    real('breaker.failures.to', 0, 1),
    real('breaker.latencyMs.from', 0, 60_000),
    real('breaker.latencyMs.to', 0, 60_000),
    whole('breaker.probe.firstMs', 10, 60_000),
    whole('breaker.probe.capMs', 10, 600_000),
    real('breaker.probe.jitter', 0, 1),
    whole('breaker.probe.calmMs', 0, 600_000),
    whole('breaker.trial.calls', 1, 1_000),
    whole('breaker.trial.waitMs', 10, 60_000),
    real('breaker.quorumShare', 0, 1),
  ],
  degrade: [
    choice('degrade.mode', MODES),
    ...ENDPOINTS.flatMap((endpoint) => [
      choice(`degrade.switches.${endpoint}.level`, endpoint === 'purchase' ? ALL_OR_NOTHING : LEVELS),
      real(`degrade.switches.${endpoint}.percent`, 0, 100),
    ]),
    ...Object.keys(DEPENDENCIES).flatMap((dependency) =>
      ENDPOINTS.map((endpoint) =>
        choice(`degrade.asked.${dependency}.${endpoint}`, endpoint === 'purchase' ? ALL_OR_NOTHING : LEVELS),
      ),
    ),
    whole('degrade.cache.ttlMs', 100, 3_600_000),
    real('degrade.cache.factor', 0, 1),
    whole('degrade.cache.ttlMinMs', 0, 3_600_000),
  ],
  sign: [
    choice('sign.mode', MODES),
    sales('sign.sales'),
    lines('sign.keys', 64),
    { kind: 'some', path: 'sign.versions', options: [1, 2] },
    whole('sign.windowMs', 1_000, 3_600_000),
    choice('sign.down', WHEN_DOWN),
    choice('sign.tokens.mode', MODES),
    sales('sign.tokens.sales'),
    whole('sign.tokens.leadMs', 0, DAY_MS),
    whole('sign.tokens.lifeMs', 1_000, DAY_MS),
    real('sign.tokens.perUnit', 1, 1_000),
    whole('sign.tokens.perBuyer', 1, 1_000),
    whole('sign.tokens.perAddress', 1, 100_000, true),
    choice('sign.tokens.down', WHEN_DOWN),
  ],
  queue: [
    choice('queue.mode', MODES),
    sales('queue.sales'),
    choice('queue.order', ['arrival', 'lot']),
    real('queue.admitPerSecond', 0, 100_000),
    whole('queue.processes', 1, 1_000),
    whole('queue.ticketsMax', 1, 1_000_000),
    whole('queue.idleMs', 1_000, 3_600_000),
    whole('queue.passMs', 1_000, 3_600_000),
    whole('queue.pollMs', 100, 60_000),
  ],
  orders: [
    choice('orders.mode', MODES),
    sales('orders.sales'),
    whole('orders.cancelsMax', 0, 1_000),
    whole('orders.unpaidPauseMs', 1_000, DAY_MS, true),
    whole('orders.unpaidPauseMaxMs', 1_000, DAY_MS),
    choice('orders.declines.mode', MODES),
    whole('orders.declines.perOrder', 1, 100),
    whole('orders.declines.perBuyerHour', 1, 1_000),
  ],
};

/** Returns every field, including fields inside optional fields. */
export const allRuleFields = (
  fields: readonly RuleField[] = LAYERS.flatMap((layer) => RULE_FIELDS[layer]),
): RuleField[] =>
  fields.flatMap((field) => (field.kind === 'optional' ? [field, ...allRuleFields(field.fields)] : [field]));

/** Returns what is wrong with a typed number, or null. The limits can be inserted into a sentence of any language. */
export function numberFault(
  field: Extract<RuleField, { kind: 'number' }>,
  value: number,
): { readonly min: number; readonly max: number } | null {
  const isFine =
    Number.isFinite(value) && value >= field.min && value <= field.max && (!field.whole || Number.isInteger(value));
  return isFine ? null : { min: field.min, max: field.max };
}

/**
 * Returns the name of a field, with its endpoint and its server if it has them. A field inside an optional field has a
 * name of its own, since the optional field provides the context.
 * @param names by path, with `*` for an endpoint or a server, or by the last word of the path
 */
export function ruleName(
  path: string,
  {
    names,
    endpoints,
  }: { readonly names: Readonly<Record<string, string>>; readonly endpoints: Readonly<Record<string, string>> },
): string {
  const words = path.split('.');
  const isOfMany = words[0] === 'limits' || words[0] === 'degrade';
  const many: Readonly<Record<string, string>> = isOfMany ? { ...DEPENDENCIES, ...endpoints } : {};
  const name = names[words.map((word) => (word in many ? '*' : word)).join('.')];
  if (name === undefined) return names[words.at(-1) ?? ''] ?? path;
  const of = words.flatMap((word) => many[word] ?? []);
  return of.length === 0 ? name : `${of.join(', ')}: ${name}`;
}

/**
 * Returns the name of a value where no form provides the context: with its layer, and with the optional field that
 * holds it. An unknown path is its own name.
 */
export function ruleTitle(
  path: string,
  words: Parameters<typeof ruleName>[1] & { readonly layers: Readonly<Record<string, string>>; readonly mode: string },
): string {
  const [layer = '', ...rest] = path.split('.');
  const last = rest.at(-1);
  const of = words.layers[layer];
  if (of === undefined || last === undefined) return of ?? path;
  const parent = path.slice(0, -last.length - 1);
  if (/^\d+$/.test(last)) return `${ruleTitle(parent, words)} ${Number(last) + 1}`;
  if (rest.length === 1 && last === 'mode') return `${of} › ${words.mode}`;
  const name = ruleName(path, words);
  if (name === path) return path;
  return name === words.names[last] ? `${ruleTitle(parent, words)} › ${name}` : `${of} › ${name}`;
}

/** Splits a mistake that the API reports into the name of the field and what is wrong with it. */
export function ruleFault(
  { field, message }: FieldError,
  words: Parameters<typeof ruleTitle>[1],
): { readonly name: string; readonly fault: string } {
  const isNamed = message.startsWith(`${field} `);
  return { name: ruleTitle(field, words), fault: isNamed ? message.slice(field.length + 1) : message };
}

export const withRule = (rules: JsonObject, path: string, value: Json): JsonObject =>
  withValue(rules, path, value) as JsonObject;

/** Returns whether a layer differs from the current rules. */
export const layerChanged = (before: JsonObject, after: JsonObject, layer: Layer): boolean =>
  !isSame(valueAt(before, layer), valueAt(after, layer));
