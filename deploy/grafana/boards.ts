/** A board of Grafana. Rows and panels stand in the order in which people read them. */
export interface Board {
  /** Name of the board's file, and its address in Grafana. */
  readonly uid: string;
  readonly title: string;
  readonly about: string;
  /** A variable for expressions. Its values come from a label of a metric. */
  readonly variable?: { readonly name: string; readonly metric: string; readonly label: string };
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[];
}

export interface Panel {
  readonly title: string;
  /** The unit, by its name in Grafana: `short`, `s`, `bytes`, `percentunit`, `reqps`, `ops`. */
  readonly unit: string;
  /** Maps each legend to a PromQL expression. */
  readonly lines: Readonly<Record<string, string>>;
  /** Stacks the lines, which are parts of a whole. */
  readonly stacked?: boolean;
  readonly help?: string;
}

type Lines = Panel['lines'];
const panel = (title: string, unit: string, lines: Lines, more: Pick<Panel, 'stacked' | 'help'> = {}): Panel => ({
  title,
  unit,
  lines,
  ...more,
});

const RATE = '$__rate_interval';
const rate = (metric: string, by = ''): string => `sum${by === '' ? '' : ` by (${by})`} (rate(${metric}[${RATE}]))`;
const quantile = (q: number, histogram: string, labels = '', by = ''): string =>
  `histogram_quantile(${q}, sum by (le${by === '' ? '' : `, ${by}`}) (rate(${histogram}_bucket${labels === '' ? '' : `{${labels}}`}[${RATE}])))`;
const median99 = (histogram: string, labels = ''): Record<string, string> => ({
  p50: quantile(0.5, histogram, labels),
  p99: quantile(0.99, histogram, labels),
});

const SALE: Board = {
  uid: 'seckill-sale',
  title: 'Seckill: sale',
  about: 'One sale while it runs: units left, answers to buyers, and whether orders keep up.',
  variable: { name: 'sale', metric: 'seckill_sale_units', label: 'sale' },
  rows: [
    {
      title: 'Units',
      panels: [
        panel(
          'Units of the sale',
          'short',
          {
            left: 'sum(max by (sale) (seckill_sale_units{sale=~"$sale",units="left"}))',
            'held (not yet in MySQL)': 'sum(max by (sale) (seckill_sale_units{sale=~"$sale",units="held"}))',
            sold: 'sum(max by (sale) (seckill_sale_units{sale=~"$sale",units="sold"}))',
          },
          { stacked: true },
        ),
        panel(
          'Purchase attempts',
          'reqps',
          { '{{sale}}': 'max by (sale) (seckill_hot_sale_purchases_per_second)' },
          { help: 'Shows only sales with more attempts per second than HOT_SALE_PER_SECOND.' },
        ),
      ],
    },
    {
      title: 'Answers',
      panels: [
        panel(
          'Answers to purchases by code',
          'reqps',
          { '{{code}}': rate('seckill_sale_answers_total{sale=~"$sale"}', 'code') },
          { stacked: true },
        ),
        panel(
          'Time to accept a purchase, all sales',
          's',
          median99('seckill_http_answer_seconds', 'route="purchase",class="ok"'),
        ),
      ],
    },
    {
      title: 'Readiness',
      panels: [
        panel(
          'Missing before the start',
          'short',
          { '{{sale}}': 'max by (sale) (seckill_sale_not_ready)' },
          { help: '`seckill sale plan` lists what is missing.' },
        ),
        panel('Sales in repair', 'short', { '{{sales}}': 'max by (sales) (seckill_sales_in_repair)' }),
      ],
    },
  ],
};

const PATH: Board = {
  uid: 'seckill-path',
  title: 'Seckill: path of a purchase',
  about: 'Each step from the click to the order: how long it takes and how often it fails.',
  rows: [
    {
      title: 'Api',
      panels: [
        panel(
          'Purchases by answer class',
          'reqps',
          { '{{class}}': rate('seckill_http_answer_seconds_count{route="purchase"}', 'class') },
          { stacked: true },
        ),
        panel('Wait in the queue', 's', median99('seckill_queue_wait_seconds')),
        panel('Batch steps, p99', 's', { '{{step}}': quantile(0.99, 'seckill_batch_step_seconds', '', 'step') }),
        panel('Purchases per batch', 'short', median99('seckill_batch_size')),
        panel('Batches by result', 'ops', { '{{verdict}}': rate('seckill_batches_total', 'verdict') }),
        panel('Batches in flight and queued purchases', 'short', {
          'batches in flight': 'sum(seckill_batches_in_flight)',
          'queued purchases': 'sum(seckill_queue_purchases)',
        }),
      ],
    },
    {
      title: 'Worker',
      panels: [
        panel('Delivery from api to worker', 's', median99('seckill_delivery_seconds')),
        panel('One attempt to write rows to MySQL', 's', median99('seckill_record_seconds')),
        panel('Marking purchases recorded in Redis', 's', median99('seckill_mark_recorded_seconds')),
        panel('Purchases by message result', 'ops', {
          '{{verdict}}': rate('seckill_recorded_purchases_total', 'verdict'),
        }),
        panel('Write retries by reason', 'ops', { '{{reason}}': rate('seckill_record_retries_total', 'reason') }),
        panel('Orders written within 5 s of their batch', 'percentunit', {
          'in time': `${rate('seckill_recorded_in_time_purchases_total')} / ${rate('seckill_recorded_purchases_total{verdict="recorded"}')}`,
        }),
      ],
    },
    {
      title: 'Between api and worker',
      panels: [
        panel('Batches accepted but not recorded', 'short', { batches: 'max(seckill_pending_batches)' }),
        panel('Age of the oldest unrecorded batch', 's', { oldest: 'max(seckill_pending_oldest_seconds)' }),
      ],
    },
  ],
};

const ENTRY: Board = {
  uid: 'seckill-entry',
  title: 'Seckill: entry and breakers',
  about: 'Requests that admission refuses, by layer, and the state of the circuit breakers.',
  rows: [
    {
      title: 'Refusals',
      panels: [
        panel('By layer', 'reqps', {
          '{{layer}} {{word}} ({{mode}})': rate('seckill_admission_refusals_total', 'layer, word, mode'),
        }),
        panel('By limit', 'reqps', {
          '{{limit}} of {{endpoint}} ({{mode}})': rate(
            'seckill_admission_limit_refusals_total',
            'endpoint, limit, mode',
          ),
        }),
        panel('Answers of the api by code', 'reqps', {
          '{{route}} {{code}}': `topk(15, ${rate('seckill_http_answers_total', 'route, code')})`,
        }),
        panel('Buyers in waiting rooms', 'short', { waiting: 'max(seckill_admission_queue_waiting)' }),
        panel('Buyers admitted by waiting rooms, per second', 'ops', {
          admitted: 'max(rate(seckill_admission_queue_admitted_total[1m]))',
          ordered: 'max(rate(seckill_admission_queue_ordered_total[1m]))',
        }),
      ],
    },
    {
      title: 'Breakers',
      panels: [
        panel('State: 0 closed, 1 half open, 2 open', 'short', {
          '{{dependency}}': 'max by (dependency) (seckill_admission_breaker)',
        }),
        panel('Refused by a breaker', 'reqps', {
          '{{dependency}} ({{mode}})': rate('seckill_admission_breaker_refusals_total', 'dependency, mode'),
        }),
        panel('Degraded answers', 'reqps', {
          '{{endpoint}} {{level}} ({{mode}})': rate('seckill_admission_degraded_total', 'endpoint, level, mode'),
        }),
        panel('Rules: newest version and version in force', 'short', {
          newest: 'max(seckill_admission_rules_newest_version)',
          'in force (lowest of all apis)': 'min(seckill_admission_rules_version)',
        }),
      ],
    },
  ],
};

const BROKER: Board = {
  uid: 'seckill-broker',
  title: 'Seckill: broker',
  about: 'Messages in RocketMQ, as one keeper counts them, and how the programs process them.',
  rows: [
    {
      title: 'Groups',
      panels: [
        panel('Lag', 'short', { '{{group}}': 'max by (group) (seckill_mq_lag)' }),
        panel('Age of the oldest message', 's', { '{{group}}': 'max by (group) (seckill_mq_oldest_seconds)' }),
        panel('Dead letters not collected', 'short', { '{{topic}}': 'max by (topic) (seckill_mq_dlq_depth)' }),
        panel('Brokers down', 'short', { down: 'max(seckill_mq_brokers_down)' }),
      ],
    },
    {
      title: 'Half messages',
      panels: [
        panel('Open and given up', 'short', {
          open: 'max(seckill_mq_half_open)',
          'given up': 'max(seckill_mq_half_discarded)',
        }),
        panel('Age of the oldest open half message', 's', { oldest: 'max(seckill_mq_half_oldest_seconds)' }),
        panel('Sending a half message', 's', median99('seckill_half_send_seconds')),
        panel('Check-backs', 'ops', { '{{answer}}': rate('seckill_check_backs_total', 'answer') }),
      ],
    },
    {
      title: 'Messages',
      panels: [
        panel('Deliveries to workers by result', 'ops', { '{{verdict}}': rate('seckill_deliveries_total', 'verdict') }),
        panel('Consumed by keepers', 'ops', {
          '{{group}} {{verdict}}': rate('seckill_consumed_messages_total', 'group, verdict'),
        }),
        panel('Forged messages', 'ops', {
          '{{topic}} {{reason}}': rate('seckill_forged_messages_total', 'topic, reason'),
        }),
        panel('Set aside for sales in repair', 'short', { '{{group}}': 'sum by (group) (seckill_deliveries_aside)' }),
      ],
    },
  ],
};

const COMPENSATION: Board = {
  uid: 'seckill-compensation',
  title: 'Seckill: compensation',
  about: 'Overdue work, differences between Redis and MySQL, and repairs.',
  rows: [
    {
      title: 'Overdue work',
      panels: [
        panel('Items past their deadline', 'short', { '{{state}}': 'max by (state) (seckill_overdue)' }),
        panel('Age of the oldest overdue item', 's', {
          '{{state}}': 'max by (state) (seckill_overdue_oldest_seconds)',
        }),
        panel('Outbox rows to do', 'short', { '{{kind}}': 'max by (kind) (seckill_outbox_undone_rows)' }),
        panel('Age of the oldest outbox row', 's', { '{{kind}}': 'max by (kind) (seckill_outbox_oldest_seconds)' }),
      ],
    },
    {
      title: 'Differences and repairs',
      panels: [
        panel('Differences found by reconcile', 'short', { '{{kind}}': 'max by (kind) (seckill_reconcile_findings)' }),
        panel('Compensation jobs', 'short', { '{{state}}': 'max by (state) (seckill_compensation_jobs)' }),
        panel('Parked dead letters', 'short', { parked: 'max(seckill_dead_letters_parked)' }),
        panel('Repairs of sales', 'ops', { '{{result}}': rate('seckill_sale_repairs_total', 'result') }),
        panel('Batches re-driven and marked late', 'ops', {
          're-driven': rate('seckill_redriven_batches_total'),
          'marked late': rate('seckill_marked_late_batches_total'),
        }),
        panel('Charges', 'ops', { '{{outcome}}': rate('seckill_charges_total', 'outcome') }),
        panel('Refunds', 'ops', { '{{outcome}}': rate('seckill_refund_tries_total', 'outcome') }),
      ],
    },
  ],
};

const PROGRAMS: Board = {
  uid: 'seckill-programs',
  title: 'Seckill: programs',
  about: 'Processes, keeper jobs, and the memory of Redis.',
  rows: [
    {
      title: 'Processes',
      panels: [
        panel('CPU, cores', 'short', {
          '{{program}} {{instance}}': 'sum by (program, instance) (rate(process_cpu_seconds_total[$__rate_interval]))',
        }),
        panel('Memory', 'bytes', { '{{program}} {{instance}}': 'process_resident_memory_bytes' }),
        panel('Event loop delay, p99 (0.1 s when idle)', 's', {
          '{{program}} {{instance}}': 'nodejs_eventloop_lag_p99_seconds',
        }),
        panel('Garbage collection, share of time', 'percentunit', {
          '{{program}} {{kind}}': 'sum by (program, kind) (rate(nodejs_gc_duration_seconds_sum[$__rate_interval]))',
        }),
        panel('Wait for a MySQL connection, p99', 's', {
          '{{program}}': quantile(0.99, 'seckill_mysql_pool_wait_seconds', '', 'program'),
        }),
        panel('Connections refused because too many are open', 'ops', {
          dropped: rate('seckill_http_connections_dropped_total'),
        }),
      ],
    },
    {
      title: 'Keeper and Redis',
      panels: [
        panel('Duration of jobs, p99', 's', { '{{task}}': quantile(0.99, 'seckill_keeper_job_seconds', '', 'task') }),
        panel('Longest running jobs', 's', { '{{task}}': 'max by (task) (seckill_keeper_job_running_seconds)' }),
        panel('Jobs that failed', 'ops', {
          '{{task}}': rate('seckill_keeper_job_seconds_count{result="failed"}', 'task'),
        }),
        panel('Clock difference to the keeper', 's', {
          '{{server}}': 'max by (server) (seckill_clock_difference_seconds)',
        }),
        panel('Memory of Redis', 'bytes', {
          '{{server}} used': 'max by (server) (seckill_redis_memory_used_bytes)',
          '{{server}} at most': 'max by (server) (seckill_redis_memory_max_bytes)',
        }),
        panel('Days until Redis is full', 'short', {
          '{{server}}': 'min by (server) (seckill_redis_memory_days_left)',
        }),
      ],
    },
  ],
};

export const BOARDS: readonly Board[] = [SALE, PATH, ENTRY, BROKER, COMPENSATION, PROGRAMS];
