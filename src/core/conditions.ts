export const SEVERITIES = ['page', 'ticket', 'info'] as const;

/** A current problem, described by its alert. */
export interface Condition {
  /** Identifies the condition. Every process that sees the same problem uses the same key. */
  readonly key: string;
  /** The name of the alert. */
  readonly name: string;
  /** `info` means that the problem has begun. Its alert fires if the problem lasts. */
  readonly severity: (typeof SEVERITIES)[number];
  /** The affected sale, topic, server or dependency. Null if the alert has no labels. */
  readonly about: string | null;
  readonly text: string;
  /** When it began or was first seen, Unix ms. */
  readonly sinceMs: number;
}

/** An alert that a process can judge by its own metrics alone. */
export interface AlertRule {
  readonly name: string;
  readonly severity: 'page' | 'ticket';
  /** How long the problem lasts before the alert fires, ms. */
  readonly forMs: number;
  /** Text with `{{ $labels.name }}` and `{{ $value }}` in place of a label and of the value. */
  readonly summary: string;
  readonly metric: string;
  /** Selects series by a label. Null: all. */
  readonly matcher: { readonly label: string; readonly equal: boolean; readonly value: string } | null;
  /** Divides by, or subtracts, the series of this metric with the same labels. */
  readonly other: { readonly operator: '/' | '-'; readonly metric: string } | null;
  /** Each combination of these labels is a condition. */
  readonly by: readonly string[];
  /** The problem exists while a value is above the limit, or below the limit if `above` is false. */
  readonly above: boolean;
  readonly limit: number;
  /** How long a problem outlasts its last bad value, ms. */
  readonly lastsMs: number;
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
const durationMs = (text: string): number => (text === '' ? 0 : parseInt(text) * (UNIT_MS[text.at(-1) ?? ''] ?? NaN));

/** For example `max by (label) (…) > 1`. */
const COMPARISON = /^(max|min)(?: by \(([\w, ]+)\) )?\((.+)\) ([<>]) ([\d.]+)$/;
/** For example `metric{label="value"} / other`, or `max_over_time(metric[1m])`. */
const OPERAND = /^(?:max_over_time\()?(\w+)(?:\{(\w+)(!?=)"([^"]*)"\})?(?:\[(\d+[smh])\]\))?(?: ([/-]) (\w+))?$/;

/**
 * Reads the alerts that a process can judge by its current metrics. Rates, comparisons with the past and absent metrics
 * need Prometheus.
 * @param text alerts.yml in the layout of this repository, not YAML in general
 */
export function readAlertRules(text: string): AlertRule[] {
  return text.split(/^ +- alert: /m).flatMap((block) => {
    const [, aggregate, by = '', inner = '', comparison, limit] = COMPARISON.exec(field(block, 'expr')) ?? [];
    const operand = OPERAND.exec(inner);
    if (operand === null || (aggregate === 'max') !== (comparison === '>')) return [];
    const [, metric = '', label, equality, value = '', window = '', operator, other] = operand;
    return {
      name: /^\w*/.exec(block)?.[0] ?? '',
      severity: block.includes('labels: { severity: page }') ? 'page' : 'ticket',
      forMs: durationMs(field(block, 'for')),
      summary: field(block, 'summary'),
      metric,
      matcher: label === undefined ? null : { label, equal: equality === '=', value },
      other: other === undefined ? null : { operator: operator === '/' ? '/' : '-', metric: other },
      by: by === '' ? [] : by.split(', '),
      above: comparison === '>',
      limit: Number(limit),
      lastsMs: durationMs(window),
    };
  });
}

/** Returns a plain, quoted or folded value. */
function field(block: string, name: string): string {
  const [, , folded = '', line = ''] = new RegExp(`^( +)${name}: (?:>-((?:\n\\1 +.*)+)|(.*))$`, 'm').exec(block) ?? [];
  const text = folded.trim().replaceAll(/\s+/g, ' ') || line;
  return text.startsWith("'") ? text.slice(1, -1).replaceAll("''", "'") : text;
}

/** The current value of one series of a metric. */
export interface Series {
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  readonly value: number;
}

/** A problem that lasts. Its times are on the monotonic clock, except `sinceMs`. */
interface Holding {
  readonly rule: AlertRule;
  readonly labels: readonly string[];
  readonly sinceMs: number;
  readonly beganMs: number;
  lastSeenMs: number;
  value: number;
}

/** Judges the rules at each `look`, and remembers when each problem began. */
export class AlertWatch {
  readonly #rules: readonly AlertRule[];
  readonly #holding = new Map<string, Holding>();

  constructor(rules: readonly AlertRule[]) {
    this.#rules = rules;
  }

  /** The metrics that `look` reads. */
  get metrics(): readonly string[] {
    return [
      ...new Set(this.#rules.flatMap(({ metric, other }) => (other === null ? [metric] : [metric, other.metric]))),
    ];
  }

  /**
   * @param seriesOf returns none if this process does not publish the metric
   * @param nowMs Unix ms
   * @param monotonicMs the same moment on the monotonic clock
   */
  look(
    seriesOf: (metric: string) => readonly Series[],
    { nowMs, monotonicMs }: { readonly nowMs: number; readonly monotonicMs: number },
  ): Condition[] {
    const bad = new Set<string>();
    for (const rule of this.#rules) {
      for (const { labels, value } of badOf(rule, seriesOf)) {
        const key = [rule.name, ...labels].join(' ');
        bad.add(key);
        const known = this.#holding.get(key);
        if (known === undefined) {
          const holding = { rule, labels, sinceMs: nowMs, beganMs: monotonicMs, lastSeenMs: monotonicMs, value };
          this.#holding.set(key, holding);
        } else {
          known.lastSeenMs = monotonicMs;
          known.value = value;
        }
      }
    }
    const conditions: Condition[] = [];
    for (const [key, { rule, labels, sinceMs, beganMs, lastSeenMs, value }] of this.#holding) {
      if (!bad.has(key) && (rule.lastsMs === 0 || monotonicMs - lastSeenMs > rule.lastsMs)) {
        this.#holding.delete(key);
        continue;
      }
      const severity = monotonicMs - beganMs >= rule.forMs ? rule.severity : 'info';
      const about = labels.at(-1) ?? null;
      conditions.push({ key, name: rule.name, severity, about, text: textOf(rule, labels, value), sinceMs });
    }
    return conditions;
  }
}

/** Returns the worst bad value for each combination of labels. */
function badOf(
  { metric, matcher, other, by, above, limit }: AlertRule,
  seriesOf: (metric: string) => readonly Series[],
): { readonly labels: readonly string[]; readonly value: number }[] {
  const found = new Map<string, { readonly labels: readonly string[]; readonly value: number }>();
  const isWorse = (value: number, than: number): boolean => (above ? value > than : value < than);
  for (const series of seriesOf(metric)) {
    if (matcher !== null && (series.labels[matcher.label] === matcher.value) !== matcher.equal) continue;
    let { value } = series;
    if (other !== null) {
      const beside = seriesOf(other.metric).find(({ labels }) => isSame(labels, series.labels));
      if (beside === undefined) continue;
      value = other.operator === '/' ? value / beside.value : value - beside.value;
    }
    const labels = by.map((name) => String(series.labels[name] ?? ''));
    const key = labels.join(' ');
    if (isWorse(value, found.get(key)?.value ?? limit)) found.set(key, { labels, value });
  }
  return [...found.values()];
}

const isSame = (one: Series['labels'], other: Series['labels']): boolean =>
  Object.entries(one).every(([name, value]) => other[name] === value);

const textOf = ({ summary, by }: AlertRule, labels: readonly string[], value: number): string =>
  summary.replaceAll(/\{\{ \$(?:labels\.(\w+)|value)[^}]*\}\}/g, (_, label?: string) =>
    label === undefined ? value.toFixed(0) : (labels[by.indexOf(label)] ?? ''),
  );

/** Merges equal conditions: the earliest time and the worst severity. The most severe come first. */
export function mergedConditions(all: readonly Condition[]): Condition[] {
  const merged = new Map<string, Condition>();
  for (const condition of all) {
    const before = merged.get(condition.key);
    merged.set(condition.key, before === undefined ? condition : worse(before, condition));
  }
  return [...merged.values()].sort(
    (one, other) =>
      SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity) || one.sinceMs - other.sinceMs,
  );
}

const worse = (one: Condition, other: Condition): Condition => ({
  ...(SEVERITIES.indexOf(other.severity) < SEVERITIES.indexOf(one.severity) ? other : one),
  sinceMs: Math.min(one.sinceMs, other.sinceMs),
});
