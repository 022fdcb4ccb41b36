export const SEVERITIES = ['page', 'ticket', 'info'] as const;

/** Something that is wrong now, as an alert would say it. */
export interface Condition {
  /** The same for the same thing, whoever sees it. */
  readonly key: string;
  /** As the alert is called. */
  readonly name: string;
  /** `info`: it has begun, and becomes what the alert says when it lasts. */
  readonly severity: (typeof SEVERITIES)[number];
  /** The sale, topic, server or dependency that it is about; null: the whole. */
  readonly about: string | null;
  readonly text: string;
  /** Since when, Unix ms, as the process that saw it first knows. */
  readonly sinceMs: number;
}

/** When an alert fires, for those that a process can judge by the metrics that it publishes itself. */
export interface AlertRule {
  readonly name: string;
  readonly severity: 'page' | 'ticket';
  /** How long it has to last, ms. */
  readonly forMs: number;
  /** `{label}` is that label, `{value}` the figure. */
  readonly text: string;
  readonly metric: string;
  /** Only series with these labels, and without those. */
  readonly where?: Labels;
  readonly whereNot?: Labels;
  /** The metric divided by this one, or less this one, of the same labels. */
  readonly dividedBy?: string;
  readonly less?: string;
  /** A condition for each value of these labels; it is about the last one. Left out: one in all. */
  readonly by?: readonly string[];
  /** One of the two: the largest value is above, or the smallest below. */
  readonly above?: number;
  readonly below?: number;
  /** A series counts as bad for so long after it was, ms. */
  readonly lastsMs?: number;
}
type Labels = Readonly<Record<string, string>>;

const overdue = (state: string): Pick<AlertRule, 'metric' | 'where' | 'above'> => ({
  metric: 'seckill_overdue',
  where: { state },
  above: 0,
});

/** The same as in deploy/prometheus/alerts.yml; a test holds the two together, and says which alerts are not here. */
export const ALERT_RULES: readonly AlertRule[] = [
  {
    name: 'SeckillPurchasesNotRecorded',
    severity: 'page',
    forMs: 120_000,
    text: 'Purchases were accepted and are not in MySQL, and the re-drive does not help.',
    ...overdue('batch_pending'),
  },
  {
    name: 'SeckillOrdersDoNotExpire',
    severity: 'page',
    forMs: 120_000,
    text: 'Unpaid orders are past their deadline, their units are not for sale again.',
    ...overdue('pending_payment'),
  },
  {
    name: 'SeckillClocksDiffer',
    severity: 'page',
    forMs: 30_000,
    text: 'The clocks of a keeper and of {server} differ by more than 2 s, so no order expires.',
    metric: 'seckill_clock_difference_seconds',
    by: ['server'],
    above: 2,
  },
  {
    name: 'SeckillOutboxStalled',
    severity: 'page',
    forMs: 60_000,
    text: 'Events, payment deadlines or units that go back are late.',
    ...overdue('outbox'),
  },
  {
    name: 'SeckillDeadLetters',
    severity: 'ticket',
    forMs: 0,
    text: 'Dead letters wait to be replayed or discarded; their units stay held.',
    ...overdue('dead_letter'),
  },
  {
    name: 'SeckillRefundsDue',
    severity: 'ticket',
    forMs: 0,
    text: 'Refunds have been due for too long. The keeper retries by itself, if it has a provider.',
    ...overdue('refund'),
  },
  {
    name: 'SeckillPaymentsUnresolved',
    severity: 'ticket',
    forMs: 0,
    text: 'Charges were begun, and the payment provider does not say whether it took the money.',
    ...overdue('payment_open'),
  },
  {
    name: 'SeckillPaymentCases',
    severity: 'ticket',
    forMs: 0,
    text: 'Money needs a person: a refund that failed, a dispute, or a payment that cannot be recorded.',
    ...overdue('payment_case'),
  },
  {
    name: 'SeckillCompensationStalled',
    severity: 'page',
    forMs: 120_000,
    text: 'Compensation jobs are due and no keeper works on them.',
    ...overdue('compensation'),
  },
  {
    name: 'SeckillRedisNearlyFull',
    severity: 'page',
    forMs: 300_000,
    text: 'Redis {server} uses more than 80 % of its memory. A full Redis refuses every purchase.',
    metric: 'seckill_redis_memory_used_bytes',
    dividedBy: 'seckill_redis_memory_max_bytes',
    by: ['server'],
    above: 0.8,
  },
  {
    name: 'SeckillRedisFillsUp',
    severity: 'ticket',
    forMs: 3_600_000,
    text: 'At the rate of the last day Redis {server} is full in less than a week.',
    metric: 'seckill_redis_memory_days_left',
    by: ['server'],
    below: 7,
  },
  {
    name: 'SeckillSalesNotRetired',
    severity: 'ticket',
    forMs: 600_000,
    text: 'Sales are long over and cannot be retired, so Redis keeps them.',
    ...overdue('sale_kept'),
  },
  {
    name: 'SeckillOrdersNotArchived',
    severity: 'ticket',
    forMs: 600_000,
    text: 'Orders of retired sales do not go to the archive, or not fast enough, so the tables that sell grow.',
    ...overdue('sale_unarchived'),
  },
  {
    name: 'SeckillRedisAndMysqlDiffer',
    severity: 'ticket',
    forMs: 600_000,
    text: 'Redis and MySQL do not agree, two comparisons in a row ({kind}).',
    metric: 'seckill_reconcile_findings',
    whereNot: { kind: 'stale_marker' },
    by: ['kind'],
    above: 0,
  },
  {
    name: 'SeckillSaleHot',
    severity: 'ticket',
    forMs: 30_000,
    text: 'Buyers try to buy in sale {sale} {value} times a second.',
    metric: 'seckill_hot_sale_purchases_per_second',
    by: ['sale'],
    above: 5000,
  },
  {
    name: 'SeckillSaleLocked',
    severity: 'page',
    forMs: 0,
    text: 'A sale is locked for longer than a minute. Redis may have lost data of it, and its repair does not end.',
    ...overdue('sale_shut'),
  },
  {
    name: 'SeckillUnitsBetweenBuckets',
    severity: 'ticket',
    forMs: 60_000,
    text: 'Units of a sale are in transit between two buckets and do not arrive.',
    ...overdue('units_lent'),
  },
  {
    name: 'SeckillSalesNotClosed',
    severity: 'ticket',
    forMs: 0,
    text: 'The window of a sale ended long ago and the sale is not closed.',
    ...overdue('sale_over'),
  },
  {
    name: 'SeckillSaleNotReady',
    severity: 'page',
    forMs: 60_000,
    text: 'Sale {sale} starts soon, or should have started, and something is missing.',
    metric: 'seckill_sale_not_ready',
    by: ['sale'],
    above: 0,
  },
  {
    name: 'SeckillDeadLetterParked',
    severity: 'ticket',
    forMs: 0,
    text: 'Dead letters were parked. Units of purchases among them stay held until somebody decides.',
    metric: 'seckill_dead_letters_parked',
    above: 0,
  },
  {
    name: 'SeckillDeadLettersNotCollected',
    severity: 'page',
    forMs: 60_000,
    text: 'Dead letters wait in {topic}, and no keeper collects them.',
    metric: 'seckill_mq_dlq_depth',
    by: ['topic'],
    above: 0,
  },
  {
    name: 'SeckillConsumersBehind',
    severity: 'page',
    forMs: 60_000,
    text: 'Messages of {topic} wait for {group}.',
    metric: 'seckill_mq_oldest_seconds',
    by: ['group', 'topic'],
    above: 30,
  },
  {
    name: 'SeckillHalfMessagesOpen',
    severity: 'page',
    forMs: 60_000,
    text: 'Half messages get no answer. Purchases whose api died stay undecided.',
    metric: 'seckill_mq_half_oldest_seconds',
    above: 60,
  },
  {
    name: 'SeckillHalfMessagesDiscarded',
    severity: 'ticket',
    forMs: 0,
    text: 'The broker gave up half messages that nobody answered for an hour.',
    metric: 'seckill_mq_half_discarded',
    above: 0,
  },
  {
    name: 'SeckillBrokerDown',
    severity: 'page',
    forMs: 60_000,
    text: 'A broker of the cluster does not answer, or has died.',
    metric: 'seckill_mq_brokers_down',
    above: 0,
  },
  {
    name: 'SeckillKeeperJobHangs',
    severity: 'page',
    forMs: 0,
    text: 'A run of the job {task} has not ended for a quarter of an hour.',
    metric: 'seckill_keeper_job_running_seconds',
    by: ['task'],
    above: 900,
  },
  {
    name: 'SeckillMysqlOutage',
    severity: 'page',
    forMs: 60_000,
    text: 'A worker does not reach MySQL. Purchases go on and wait in Redis and the broker.',
    metric: 'seckill_mysql_outage',
    above: 0,
  },
  {
    name: 'SeckillAdmissionBreakerOpen',
    severity: 'page',
    forMs: 60_000,
    text: 'An api sees calls to {dependency} fail. Where the rules say so, buyers get degraded answers, or 503.',
    metric: 'seckill_admission_breaker',
    by: ['dependency'],
    above: 1,
    lastsMs: 60_000,
  },
  {
    name: 'SeckillAdmissionRulesRefused',
    severity: 'page',
    forMs: 0,
    text: 'An api cannot use the newest admission rules. It goes on with older ones; if it was started since, it is not ready and lets no buyer in.',
    metric: 'seckill_admission_rules_newest_version',
    less: 'seckill_admission_rules_version',
    above: 0,
  },
];

/** One series of a metric, and its value now. */
export interface Series {
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  readonly value: number;
}

/** Something that a rule is about, for as long as the rule holds. Times on the monotonic clock, but for `sinceMs`. */
interface Holding {
  readonly rule: AlertRule;
  readonly labels: readonly string[];
  readonly sinceMs: number;
  readonly beganMs: number;
  lastSeenMs: number;
  value: number;
}

/** Judges the rules again and again, and remembers since when each holds. */
export class AlertWatch {
  readonly #rules: readonly AlertRule[];
  readonly #holding = new Map<string, Holding>();

  constructor(rules: readonly AlertRule[] = ALERT_RULES) {
    this.#rules = rules;
  }

  /** The metrics that `look` asks for. */
  get metrics(): readonly string[] {
    const names = this.#rules.flatMap(({ metric, dividedBy, less }) => [metric, dividedBy, less]);
    return [...new Set(names.filter((name) => name !== undefined))];
  }

  /**
   * @param seriesOf those of a metric; none, where this process does not publish it
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
      const lasts = rule.lastsMs !== undefined && monotonicMs - lastSeenMs <= rule.lastsMs;
      if (!bad.has(key) && !lasts) {
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

/** What a rule holds for, each with its worst value. */
function badOf(
  rule: AlertRule,
  seriesOf: (metric: string) => readonly Series[],
): { readonly labels: readonly string[]; readonly value: number }[] {
  const { metric, where = {}, whereNot = {}, dividedBy, less, by = [], above, below } = rule;
  const found = new Map<string, { readonly labels: readonly string[]; readonly value: number }>();
  const other = dividedBy ?? less;
  for (const series of seriesOf(metric)) {
    if (Object.entries(where).some(([name, wanted]) => series.labels[name] !== wanted)) continue;
    if (Object.entries(whereNot).some(([name, unwanted]) => series.labels[name] === unwanted)) continue;
    let { value } = series;
    if (other !== undefined) {
      const beside = seriesOf(other).find(({ labels }) => isSame(labels, series.labels));
      if (beside === undefined) continue;
      value = dividedBy === undefined ? value - beside.value : value / beside.value;
    }
    const isBad = above === undefined ? value < (below ?? -Infinity) : value > above;
    if (!isBad) continue;
    const labels = by.map((name) => String(series.labels[name] ?? ''));
    const before = found.get(labels.join(' '));
    const isWorse = before === undefined || (above === undefined ? value < before.value : value > before.value);
    if (isWorse) found.set(labels.join(' '), { labels, value });
  }
  return [...found.values()];
}

const isSame = (one: Series['labels'], other: Series['labels']): boolean =>
  Object.entries(one).every(([name, value]) => other[name] === value);

function textOf({ text, by = [] }: AlertRule, labels: readonly string[], value: number): string {
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name === 'value' ? value.toFixed(0) : (labels[by.indexOf(name)] ?? ''),
  );
}

/** The same condition as several processes see it is one: the earliest, and as severe as any of them says. */
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
