/** A board of Grafana. Rows and panels stand in the order in which people read them. */
export interface Board {
  /** Names the file of the board and its address in Grafana. */
  readonly uid: string;
  readonly title: string;
  readonly about: string;
  /** A variable that expressions may use. Its values are those of a label of a metric. */
  readonly variable?: { readonly name: string; readonly metric: string; readonly label: string };
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[];
}

export interface Panel {
  readonly title: string;
  /** The unit by its name in Grafana: `short`, `s`, `bytes`, `percentunit`, `reqps`, `ops`. */
  readonly unit: string;
  /** Maps each legend to a PromQL expression. */
  readonly lines: Readonly<Record<string, string>>;
  /** Stacks the lines, which are parts of a whole. */
  readonly stacked?: boolean;
  readonly help?: string;
}

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
        {
          title: 'Units of the sale',
          unit: 'short',
          lines: {
            left: 'sum(max by (sale) (seckill_sale_units{sale=~"$sale",units="left"}))',
            'held (not yet in MySQL)': 'sum(max by (sale) (seckill_sale_units{sale=~"$sale",units="held"}))',
            sold: 'sum(max by (sale) (seckill_sale_units{sale=~"$sale",units="sold"}))',
          },
          stacked: true,
        },
        {
          title: 'Purchase attempts',
          unit: 'reqps',
          lines: { '{{sale}}': 'max by (sale) (seckill_hot_sale_purchases_per_second)' },
          help: 'Shows only sales with more attempts per second than HOT_SALE_PER_SECOND.',
        },
      ],
    },
    {
      title: 'Answers',
      panels: [
        {
          title: 'Answers to purchases by code',
          unit: 'reqps',
          lines: { '{{code}}': rate('seckill_sale_answers_total{sale=~"$sale"}', 'code') },
          stacked: true,
        },
        {
          title: 'Time to accept a purchase, all sales',
          unit: 's',
          lines: median99('seckill_http_answer_seconds', 'route="purchase",class="ok"'),
        },
      ],
    },
    {
      title: 'Readiness',
      panels: [
        {
          title: 'Missing before the start',
          unit: 'short',
          lines: { '{{sale}}': 'max by (sale) (seckill_sale_not_ready)' },
          help: '`seckill sale plan` lists what is missing.',
        },
        {
          title: 'Sales in repair',
          unit: 'short',
          lines: { '{{sales}}': 'max by (sales) (seckill_sales_in_repair)' },
        },
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
        {
          title: 'Purchases by answer class',
          unit: 'reqps',
          lines: { '{{class}}': rate('seckill_http_answer_seconds_count{route="purchase"}', 'class') },
          stacked: true,
        },
        { title: 'Wait in the queue', unit: 's', lines: median99('seckill_queue_wait_seconds') },
        {
          title: 'Batch steps, p99',
          unit: 's',
          lines: { '{{step}}': quantile(0.99, 'seckill_batch_step_seconds', '', 'step') },
        },
        { title: 'Purchases per batch', unit: 'short', lines: median99('seckill_batch_size') },
        {
          title: 'Batches by result',
          unit: 'ops',
          lines: { '{{verdict}}': rate('seckill_batches_total', 'verdict') },
        },
        {
          title: 'Batches in flight and queued purchases',
          unit: 'short',
          lines: {
            'batches in flight': 'sum(seckill_batches_in_flight)',
            'queued purchases': 'sum(seckill_queue_purchases)',
          },
        },
      ],
    },
    {
      title: 'Worker',
      panels: [
        { title: 'Delivery from api to worker', unit: 's', lines: median99('seckill_delivery_seconds') },
        { title: 'One attempt to write rows to MySQL', unit: 's', lines: median99('seckill_record_seconds') },
        { title: 'Marking purchases recorded in Redis', unit: 's', lines: median99('seckill_mark_recorded_seconds') },
        {
          title: 'Purchases by message result',
          unit: 'ops',
          lines: { '{{verdict}}': rate('seckill_recorded_purchases_total', 'verdict') },
        },
        {
          title: 'Write retries by reason',
          unit: 'ops',
          lines: { '{{reason}}': rate('seckill_record_retries_total', 'reason') },
        },
        {
          title: 'Orders written within 5 s of their batch',
          unit: 'percentunit',
          lines: {
            'in time': `${rate('seckill_recorded_in_time_purchases_total')} / ${rate('seckill_recorded_purchases_total{verdict="recorded"}')}`,
          },
        },
      ],
    },
    {
      title: 'Between api and worker',
      panels: [
        {
          title: 'Batches accepted but not recorded',
          unit: 'short',
          lines: { batches: 'max(seckill_pending_batches)' },
        },
        {
          title: 'Age of the oldest unrecorded batch',
          unit: 's',
          lines: { oldest: 'max(seckill_pending_oldest_seconds)' },
        },
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
        {
          title: 'By layer',
          unit: 'reqps',
          lines: { '{{layer}} {{word}} ({{mode}})': rate('seckill_admission_refusals_total', 'layer, word, mode') },
        },
        {
          title: 'By limit',
          unit: 'reqps',
          lines: {
            '{{limit}} of {{endpoint}} ({{mode}})': rate(
              'seckill_admission_limit_refusals_total',
              'endpoint, limit, mode',
            ),
          },
        },
        {
          title: 'Answers of the api by code',
          unit: 'reqps',
          lines: { '{{route}} {{code}}': `topk(15, ${rate('seckill_http_answers_total', 'route, code')})` },
        },
        { title: 'Buyers in waiting rooms', unit: 'short', lines: { waiting: 'sum(seckill_admission_queue_waiting)' } },
      ],
    },
    {
      title: 'Breakers',
      panels: [
        {
          title: 'State: 0 closed, 1 half open, 2 open',
          unit: 'short',
          lines: { '{{dependency}}': 'max by (dependency) (seckill_admission_breaker)' },
        },
        {
          title: 'Refused by a breaker',
          unit: 'reqps',
          lines: { '{{dependency}} ({{mode}})': rate('seckill_admission_breaker_refusals_total', 'dependency, mode') },
        },
        {
          title: 'Degraded answers',
          unit: 'reqps',
          lines: {
            '{{endpoint}} {{level}} ({{mode}})': rate('seckill_admission_degraded_total', 'endpoint, level, mode'),
          },
        },
        {
          title: 'Rules: newest version and version in force',
          unit: 'short',
          lines: {
            newest: 'max(seckill_admission_rules_newest_version)',
            'in force (lowest of all apis)': 'min(seckill_admission_rules_version)',
          },
        },
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
        { title: 'Lag', unit: 'short', lines: { '{{group}}': 'max by (group) (seckill_mq_lag)' } },
        {
          title: 'Age of the oldest message',
          unit: 's',
          lines: { '{{group}}': 'max by (group) (seckill_mq_oldest_seconds)' },
        },
        {
          title: 'Dead letters not collected',
          unit: 'short',
          lines: { '{{topic}}': 'max by (topic) (seckill_mq_dlq_depth)' },
        },
        { title: 'Brokers down', unit: 'short', lines: { down: 'max(seckill_mq_brokers_down)' } },
      ],
    },
    {
      title: 'Half messages',
      panels: [
        {
          title: 'Open and given up',
          unit: 'short',
          lines: { open: 'max(seckill_mq_half_open)', 'given up': 'max(seckill_mq_half_discarded)' },
        },
        {
          title: 'Age of the oldest open half message',
          unit: 's',
          lines: { oldest: 'max(seckill_mq_half_oldest_seconds)' },
        },
        { title: 'Sending a half message', unit: 's', lines: median99('seckill_half_send_seconds') },
        { title: 'Check-backs', unit: 'ops', lines: { '{{answer}}': rate('seckill_check_backs_total', 'answer') } },
      ],
    },
    {
      title: 'Messages',
      panels: [
        {
          title: 'Deliveries to workers by result',
          unit: 'ops',
          lines: { '{{verdict}}': rate('seckill_deliveries_total', 'verdict') },
        },
        {
          title: 'Consumed by keepers',
          unit: 'ops',
          lines: { '{{group}} {{verdict}}': rate('seckill_consumed_messages_total', 'group, verdict') },
        },
        {
          title: 'Forged messages',
          unit: 'ops',
          lines: { '{{topic}} {{reason}}': rate('seckill_forged_messages_total', 'topic, reason') },
        },
        {
          title: 'Set aside for sales in repair',
          unit: 'short',
          lines: { '{{group}}': 'sum by (group) (seckill_deliveries_aside)' },
        },
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
        {
          title: 'Items past their deadline',
          unit: 'short',
          lines: { '{{state}}': 'max by (state) (seckill_overdue)' },
        },
        {
          title: 'Age of the oldest overdue item',
          unit: 's',
          lines: { '{{state}}': 'max by (state) (seckill_overdue_oldest_seconds)' },
        },
        {
          title: 'Outbox rows to do',
          unit: 'short',
          lines: { '{{kind}}': 'max by (kind) (seckill_outbox_undone_rows)' },
        },
        {
          title: 'Age of the oldest outbox row',
          unit: 's',
          lines: { '{{kind}}': 'max by (kind) (seckill_outbox_oldest_seconds)' },
        },
      ],
    },
    {
      title: 'Differences and repairs',
      panels: [
        {
          title: 'Differences found by reconcile',
          unit: 'short',
          lines: { '{{kind}}': 'max by (kind) (seckill_reconcile_findings)' },
        },
        {
          title: 'Compensation jobs',
          unit: 'short',
          lines: { '{{state}}': 'max by (state) (seckill_compensation_jobs)' },
        },
        {
          title: 'Parked dead letters',
          unit: 'short',
          lines: { parked: 'max(seckill_dead_letters_parked)' },
        },
        {
          title: 'Repairs of sales',
          unit: 'ops',
          lines: { '{{result}}': rate('seckill_sale_repairs_total', 'result') },
        },
        {
          title: 'Batches re-driven and marked late',
          unit: 'ops',
          lines: {
            're-driven': rate('seckill_redriven_batches_total'),
            'marked late': rate('seckill_marked_late_batches_total'),
          },
        },
        { title: 'Charges', unit: 'ops', lines: { '{{outcome}}': rate('seckill_charges_total', 'outcome') } },
        { title: 'Refunds', unit: 'ops', lines: { '{{outcome}}': rate('seckill_refund_tries_total', 'outcome') } },
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
        {
          title: 'CPU, cores',
          unit: 'short',
          lines: {
            '{{program}} {{instance}}':
              'sum by (program, instance) (rate(process_cpu_seconds_total[$__rate_interval]))',
          },
        },
        { title: 'Memory', unit: 'bytes', lines: { '{{program}} {{instance}}': 'process_resident_memory_bytes' } },
        {
          title: 'Event loop delay, p99 (0.1 s when idle)',
          unit: 's',
          lines: { '{{program}} {{instance}}': 'nodejs_eventloop_lag_p99_seconds' },
        },
        {
          title: 'Garbage collection, share of time',
          unit: 'percentunit',
          lines: {
            '{{program}} {{kind}}': 'sum by (program, kind) (rate(nodejs_gc_duration_seconds_sum[$__rate_interval]))',
          },
        },
        {
          title: 'Wait for a MySQL connection, p99',
          unit: 's',
          lines: { '{{program}}': quantile(0.99, 'seckill_mysql_pool_wait_seconds', '', 'program') },
        },
        {
          title: 'Connections refused because too many are open',
          unit: 'ops',
          lines: { dropped: rate('seckill_http_connections_dropped_total') },
        },
      ],
    },
    {
      title: 'Keeper and Redis',
      panels: [
        {
          title: 'Duration of jobs, p99',
          unit: 's',
          lines: { '{{task}}': quantile(0.99, 'seckill_keeper_job_seconds', '', 'task') },
        },
        {
          title: 'Longest running jobs',
          unit: 's',
          lines: { '{{task}}': 'max by (task) (seckill_keeper_job_running_seconds)' },
        },
        {
          title: 'Jobs that failed',
          unit: 'ops',
          lines: { '{{task}}': rate('seckill_keeper_job_seconds_count{result="failed"}', 'task') },
        },
        {
          title: 'Clock difference to the keeper',
          unit: 's',
          lines: { '{{server}}': 'max by (server) (seckill_clock_difference_seconds)' },
        },
        {
          title: 'Memory of Redis',
          unit: 'bytes',
          lines: {
            '{{server}} used': 'max by (server) (seckill_redis_memory_used_bytes)',
            '{{server}} at most': 'max by (server) (seckill_redis_memory_max_bytes)',
          },
        },
        {
          title: 'Days until Redis is full',
          unit: 'short',
          lines: { '{{server}}': 'min by (server) (seckill_redis_memory_days_left)' },
        },
      ],
    },
  ],
};

export const BOARDS: readonly Board[] = [SALE, PATH, ENTRY, BROKER, COMPENSATION, PROGRAMS];
