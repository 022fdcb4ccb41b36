import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { FINDING_KINDS } from '../../src/core/sale-finding.js';
import { WATCHED_STATES } from '../../src/core/waiting-states.js';
import { BOARDS } from '../../deploy/grafana/boards.js';
import { fetchTool, runTool, type Tool } from '../helpers/prometheus-tools.js';

const FOLDER = new URL('../../deploy/prometheus/', import.meta.url).pathname;
const FILES = ['alerts.yml', 'objectives.yml'] as const;
const STEP_S = 10;

/** Series and their values in the notation of promtool, one value every ten seconds. */
type Series = Readonly<Record<string, string>>;

interface Case {
  readonly bad: Series;
  /** Time at which the alert fires with `bad`. */
  readonly fires: string;
  /** Earlier time at which the alert does not fire yet. */
  readonly waits?: string;
  /** Series with which the alert never fires. Null if there are none. */
  readonly good: Series | null;
}

const forHours = (hours: number): number => (hours * 3600) / STEP_S;
const always = (value: number, hours = 0.5): string => `${value}+0x${forHours(hours)}`;
const growing = (perStep: number, hours = 0.5): string => `0+${perStep}x${forHours(hours)}`;

const overdue = (state: string, fires: string, waits?: string): Case => ({
  bad: { [`seckill_overdue{state="${state}",program="keeper"}`]: always(1) },
  fires,
  ...(waits === undefined ? {} : { waits }),
  good: { [`seckill_overdue{state="${state}",program="keeper"}`]: always(0) },
});
const level = (series: string, bad: number, good: number, fires: string, waits?: string): Case => ({
  bad: { [series]: always(bad, 2) },
  fires,
  ...(waits === undefined ? {} : { waits }),
  good: { [series]: always(good, 2) },
});

/** A counter that rises once, after a minute, and later keeps its value. */
const rise = (of: string) => ({ bad: { [of]: '0+0x6 1+0x100' }, fires: '2m', waits: '50s', good: { [of]: always(3) } });
/** Two series, with a value of each that fires and a value of each that does not. */
type Pair = readonly [string, string];
const pair = ([a, b]: Pair, of: Omit<Case, 'bad' | 'good'> & { readonly bad: Pair; readonly good: Pair }): Case => ({
  ...of,
  bad: { [a]: of.bad[0], [b]: of.bad[1] },
  good: { [a]: of.good[0], [b]: of.good[1] },
});

const recorded = 'seckill_recorded_purchases_total{verdict="recorded"}';
const inTime = 'seckill_recorded_in_time_purchases_total';
const answers = (code: string): string => `seckill_http_answers_total{route="purchase",code="${code}"}`;
const answered = (le: string): string => `seckill_http_answer_seconds_bucket{route="purchase",class="ok",le="${le}"}`;

const running = (program: string, instance: string): string =>
  `seckill_build_info{program="${program}",instance="${instance}",version="1.1.0"}`;
const alive = (program: string): Series => ({ [running(program, 'a')]: always(1, 2) });
/** A program that ends after a minute. Prometheus marks its series as stale. */
const dies = '1+0x5 stale';

/** A certificate that expires this long after the start of the test, in days. */
const expiring = (days: number): Series => ({
  'probe_ssl_earliest_cert_expiry{job="seckill-certificate",instance="shop"}': always(days * 86_400),
});

const CASES: Readonly<Record<string, Case>> = {
  SeckillWatchdog: { bad: {}, fires: '10s', good: null },
  SeckillCertificateExpires: { bad: expiring(21), fires: '11m', waits: '9m', good: expiring(22) },
  SeckillCertificateExpiresSoon: { bad: expiring(7), fires: '11m', waits: '9m', good: expiring(8) },
  SeckillPurchasesNotRecorded: overdue('batch_pending', '2m', '30s'),
  SeckillOrdersDoNotExpire: overdue('pending_payment', '2m', '30s'),
  SeckillClocksDiffer: level('seckill_clock_difference_seconds{server="mysql"}', 3, 2, '1m', '20s'),
  SeckillOutboxStalled: overdue('outbox', '2m', '30s'),
  SeckillDeadLetters: overdue('dead_letter', '10s'),
  SeckillForgedMessages: rise('seckill_forged_messages_total{topic="seckill-redrive",reason="unsigned"}'),
  SeckillPurchasesRefusedByRedis: rise(answers('refused_by_store')),
  SeckillRefundsDue: overdue('refund', '10s'),
  SeckillPaymentsUnresolved: overdue('payment_open', '10s'),
  SeckillPaymentCases: overdue('payment_case', '10s'),
  SeckillPaymentsDeclined: pair(
    ['seckill_charges_total{outcome="declined"}', 'seckill_charges_total{outcome="succeeded"}'],
    { bad: [growing(3), growing(2)], good: [growing(3), growing(4)], fires: '10m', waits: '1m' },
  ),
  SeckillCompensationStalled: overdue('compensation', '3m', '1m'),
  SeckillRedisNearlyFull: pair(
    ['seckill_redis_memory_used_bytes{server="a"}', 'seckill_redis_memory_max_bytes{server="a"}'],
    { bad: [always(81), always(100)], good: [always(79), always(100)], fires: '6m', waits: '4m' },
  ),
  SeckillRedisFillsUp: level('seckill_redis_memory_days_left{server="a"}', 6, 8, '61m', '50m'),
  SeckillSalesNotRetired: overdue('sale_kept', '11m', '9m'),
  SeckillOrdersNotArchived: overdue('sale_unarchived', '11m', '9m'),
  SeckillRedisAndMysqlDiffer: {
    bad: { 'seckill_reconcile_findings{kind="order_lost"}': always(1) },
    fires: '11m',
    waits: '9m',
    good: { 'seckill_reconcile_findings{kind="stale_marker"}': always(1) },
  },
  SeckillCompensationGivenUp: level('seckill_compensation_jobs{state="failed_final"}', 1, 0, '10s'),
  SeckillWitnessFinding: level('seckill_witness_findings', 1, 0, '10s'),
  SeckillWitnessBehind: level('seckill_witness_behind_seconds', 61, 2, '6m', '4m'),
  SeckillReconcileOld: level('seckill_reconcile_last_run_seconds', 1801, 300, '6m', '4m'),
  SeckillSaleHot: level('seckill_hot_sale_purchases_per_second{sale="7"}', 5001, 4999, '1m', '20s'),
  SeckillHotSaleNotSplit: {
    bad: { 'seckill_hot_sale_reshards_total{result="failed"}': `0+0x10 1+0x100` },
    fires: '2m',
    waits: '40s',
    good: { 'seckill_hot_sale_reshards_total{result="failed"}': always(0) },
  },
  SeckillSaleLocked: overdue('sale_locked', '10s'),
  SeckillWebhookPaused: overdue('webhook_paused', '10s'),
  SeckillUnitsBetweenBuckets: overdue('units_in_transfer', '2m', '30s'),
  SeckillSalesNotClosed: overdue('sale_over', '10s'),
  SeckillSaleNotReady: level('seckill_sale_not_ready{sale="7"}', 2, 0, '2m', '30s'),
  SeckillDeadLetterParked: level('seckill_dead_letters_parked', 1, 0, '10s'),
  SeckillDeadLettersNotCollected: level('seckill_mq_dlq_depth{topic="%DLQ%x"}', 1, 0, '2m', '30s'),
  SeckillHookGaveUp: {
    bad: { 'seckill_consumed_messages_total{group="shop-orders",verdict="dead_letter"}': '0+0x6 1+0x100' },
    fires: '2m',
    waits: '50s',
    good: { 'seckill_consumed_messages_total{group="shop-orders",verdict="failed"}': growing(1) },
  },
  SeckillConsumersBehind: level('seckill_mq_oldest_seconds{group="g",topic="t"}', 31, 29, '2m', '30s'),
  SeckillHalfMessagesOpen: level('seckill_mq_half_oldest_seconds', 61, 20, '2m', '30s'),
  SeckillHalfMessagesDiscarded: level('seckill_mq_half_discarded', 1, 0, '10s'),
  SeckillBrokerDown: level('seckill_mq_brokers_down', 1, 0, '2m', '30s'),
  SeckillMessagesNotWatched: {
    bad: { seckill_mq_brokers_down: '0 stale' },
    fires: '6m',
    waits: '4m',
    good: { seckill_mq_brokers_down: always(1) },
  },
  SeckillApiAbsent: { bad: { [running('api', 'a')]: dies }, fires: '2m', waits: '80s', good: alive('api') },
  SeckillBuyersNotServed: level('up{program="proxy",instance="shop:443"}', 0, 1, '1m', '20s'),
  SeckillWorkerAbsent: { bad: { [running('worker', 'a')]: dies }, fires: '150s', waits: '110s', good: alive('worker') },
  SeckillProgramDown: {
    bad: { 'up{program="worker",instance="a"}': always(1), 'up{program="worker",instance="b"}': '1+0x6 0+0x200' },
    fires: '3m',
    waits: '110s',
    good: { 'up{program="worker",instance="a"}': always(1), 'up{program="proxy",instance="b"}': always(0) },
  },
  SeckillVersionsDiffer: {
    bad: {
      'seckill_build_info{program="api",version="1.1.0"}': always(1, 2),
      'seckill_build_info{program="worker",version="1.0.0"}': always(1, 2),
    },
    fires: '61m',
    waits: '59m',
    good: {
      'seckill_build_info{program="api",version="1.1.0"}': always(1, 2),
      'seckill_build_info{program="worker",version="1.1.0"}': always(1, 2),
      'seckill_build_info{program="worker",version="1.0.0"}': '1+0x60 stale',
    },
  },
  SeckillKeeperAbsent: {
    bad: { 'seckill_overdue{state="outbox"}': always(0) },
    fires: '3m',
    waits: '1m',
    good: { 'seckill_overdue{state="outbox"}': always(0), seckill_pending_oldest_seconds: always(0) },
  },
  SeckillKeeperJobFails: {
    bad: {
      'seckill_keeper_job_seconds_count{job="seckill",task="redrive",result="failed"}': growing(1),
      'seckill_keeper_job_seconds_count{job="seckill",task="redrive",result="done"}': always(9),
      'seckill_keeper_job_seconds_count{job="seckill",task="expire-orders",result="done"}': growing(1), // The other tasks run.
    },
    fires: '7m',
    waits: '4m',
    good: {
      'seckill_keeper_job_seconds_count{job="seckill",task="redrive",result="failed"}': growing(1),
      'seckill_keeper_job_seconds_count{job="seckill",task="redrive",result="done"}': growing(0.1),
    },
  },
  SeckillKeeperJobHangs: level('seckill_keeper_job_running_seconds{task="redrive"}', 901, 899, '10s'),
  SeckillMysqlOutage: level('seckill_mysql_outage', 1, 0, '2m', '30s'),
  SeckillAdmissionBreakerOpen: level('seckill_admission_breaker{dependency="mysql"}', 2, 1, '2m', '30s'),
  SeckillIssuerKeysNotRead: pair(
    ['seckill_jwks_reads_total{issuer="i",result="failed"}', 'seckill_jwks_reads_total{issuer="i",result="read"}'],
    { bad: [growing(1), always(5)], good: [growing(1), growing(1)], fires: '2m' },
  ),
  SeckillAdmissionRulesRefused: pair(
    ['seckill_admission_rules_newest_version{instance="a"}', 'seckill_admission_rules_version{instance="a"}'],
    { bad: [always(3), always(2)], good: [always(3), always(3)], fires: '10s' },
  ),
  SeckillWaitingRoomRate: pair(
    ['seckill_admission_queue_admitted_total{instance="a"}', 'seckill_admission_queue_ordered_total{instance="a"}'],
    { bad: [growing(80), growing(100)], good: [growing(97), growing(100)], fires: '8m', waits: '1m' },
  ),
  SeckillOrdersLate: {
    bad: { ...alive('worker'), [recorded]: growing(1000, 2), [inTime]: growing(980, 2) },
    fires: '10m',
    good: { ...alive('worker'), [recorded]: growing(1000, 2), [inTime]: growing(999, 2) },
  },
  SeckillOrdersLateSlowly: pair([recorded, inTime], {
    bad: [growing(1000, 7), growing(993, 7)],
    good: [growing(1000, 7), growing(999, 7)],
    fires: '65m',
  }),
  SeckillPurchasesFail: {
    bad: { ...alive('api'), [answers('accepted')]: growing(980, 2), [answers('unavailable')]: growing(20, 2) },
    fires: '10m',
    good: {
      ...alive('api'),
      [answers('accepted')]: growing(900, 2),
      [answers('sold_out')]: growing(90_000, 2),
      [answers('internal')]: growing(1, 2),
    },
  },
  SeckillPurchasesFailSlowly: {
    bad: { [answers('accepted')]: growing(993, 7), [answers('outcome_unknown')]: growing(7, 7) },
    fires: '65m',
    good: { [answers('accepted')]: growing(1000, 7), [answers('overloaded')]: growing(900, 7) },
  },
  SeckillBuyersWait: {
    bad: { [answered('1')]: growing(90), [answered('2.5')]: growing(100), [answered('+Inf')]: growing(100) },
    fires: '5m',
    waits: '1m',
    good: { [answered('0.1')]: growing(990), [answered('1')]: growing(999), [answered('+Inf')]: growing(1000) },
  },
};

/** A sale in which half of the buyers do not pay, while everything works. One purchase in ten is refused. */
const ORDINARY: Series = {
  ...Object.fromEntries(['api', 'worker', 'keeper'].map((program) => [running(program, 'a'), always(1)])),
  ...Object.fromEntries(
    ['api', 'worker', 'keeper', 'proxy'].map((of) => [`up{program="${of}",instance="a"}`, always(1)]),
  ),
  ...Object.fromEntries(WATCHED_STATES.map((state) => [`seckill_overdue{state="${state}"}`, always(0)])),
  ...Object.fromEntries(FINDING_KINDS.map((kind) => [`seckill_reconcile_findings{kind="${kind}"}`, always(0)])),
  seckill_pending_oldest_seconds: '0+0x2 1+0x200',
  seckill_reconcile_last_run_seconds: always(200),
  seckill_clock_difference_seconds: always(0.02),
  seckill_dead_letters_parked: always(0),
  seckill_witness_findings: always(0),
  seckill_witness_behind_seconds: always(1),
  seckill_mq_brokers_down: always(0),
  'seckill_mq_oldest_seconds{group="g",topic="t"}': always(1),
  'seckill_mq_dlq_depth{topic="%DLQ%g"}': always(0),
  seckill_mq_half_open: always(3),
  seckill_mq_half_oldest_seconds: always(12),
  seckill_mq_half_discarded: always(0),
  'seckill_redis_memory_used_bytes{server="a"}': growing(1000),
  'seckill_redis_memory_max_bytes{server="a"}': always(1e9),
  seckill_mysql_outage: always(0),
  'seckill_admission_breaker{dependency="redis"}': always(0),
  'seckill_keeper_job_seconds_count{task="expire-orders",result="done"}': growing(5),
  'seckill_charges_total{outcome="succeeded"}': growing(190),
  'seckill_charges_total{outcome="declined"}': growing(10),
  [answers('accepted')]: growing(360),
  [answers('sold_out')]: growing(40),
  [answers('unavailable')]: always(0),
  [recorded]: growing(360),
  [inTime]: growing(360),
  [answered('0.1')]: growing(360),
  [answered('+Inf')]: growing(360),
};

/** Series over some minutes, and the times at which the alert fires or is silent. */
interface Course {
  readonly title: string;
  readonly alert: string;
  readonly series: Series;
  readonly fires: readonly string[];
  readonly silent: readonly string[];
}

/** Grows by the given number every ten seconds, for the given minutes. */
const grows = (...parts: readonly (readonly [minutes: number, perStep: number])[]): string => {
  let value = 0;
  const values = parts.flatMap(([minutes, perStep]) =>
    Array.from({ length: minutes * (60 / STEP_S) }, () => (value += perStep)),
  );
  return values.join(' ');
};
const minutes = (from: number, to: number): string[] =>
  Array.from({ length: (to - from) * 2 + 1 }, (_, index) => `${from * 60 + index * 30}s`);

const TWICE = { fires: [...minutes(2, 5), ...minutes(17, 20)], silent: [...minutes(8, 15), ...minutes(23, 25)] };
const FOR_TWO_HOURS = { fires: ['60m', '120m'], silent: ['152m', '165m'] };
const COURSES: readonly Course[] = [
  {
    title: 'fires twice when half of the purchases fail twice for five minutes, and ends within 3 minutes',
    alert: 'SeckillPurchasesFail',
    series: {
      ...alive('api'),
      [answers('accepted')]: grows([5, 500], [10, 1000], [5, 500], [5, 1000]),
      [answers('unavailable')]: grows([5, 500], [10, 0], [5, 500], [5, 0]),
    },
    ...TWICE,
  },
  {
    title: 'fires twice when half of the purchases are recorded late twice for five minutes',
    alert: 'SeckillOrdersLate',
    series: {
      ...alive('worker'),
      [recorded]: grows([25, 1000]),
      [inTime]: grows([5, 500], [10, 1000], [5, 500], [5, 1000]),
    },
    ...TWICE,
  },
  {
    title: 'ends within half an hour after one purchase in twenty has failed for two hours',
    alert: 'SeckillPurchasesFailSlowly',
    series: {
      [answers('accepted')]: grows([120, 950], [60, 1000]),
      [answers('unavailable')]: grows([120, 50], [60, 0]),
    },
    ...FOR_TWO_HOURS,
  },
  {
    title: 'ends within half an hour after one order in twenty has been late for two hours',
    alert: 'SeckillOrdersLateSlowly',
    series: { [recorded]: grows([180, 1000]), [inTime]: grows([120, 950], [60, 1000]) },
    ...FOR_TWO_HOURS,
  },
  {
    title: 'does not end when every api dies while purchases fail',
    alert: 'SeckillPurchasesFail',
    series: {
      [running('api', 'a')]: '1+0x29 stale',
      [answers('accepted')]: `${grows([5, 980])} stale`,
      [answers('unavailable')]: `${grows([5, 20])} stale`,
    },
    fires: minutes(2, 20),
    silent: [],
  },
];

const firing = (alert: string): string => `count(ALERTS{alertname="${alert}",alertstate="firing"})`;
const test = (alert: string, series: Series, at: readonly (readonly [time: string, fires: boolean])[]): object => ({
  interval: `${STEP_S}s`,
  input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
  promql_expr_test: at.map(([time, fires]) => ({
    expr: firing(alert),
    eval_time: time,
    exp_samples: fires ? [{ labels: '{}', value: 1 }] : [],
  })),
});

describe('Prometheus rules', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'rules-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  /** Runs a checker, or skips the test when the checker is not installed. */
  const check = async (test: Mocha.Context, tool: Tool, ...args: readonly string[]): Promise<string> => {
    const found = await fetchTool(tool);
    if ('path' in found) return runTool(found.path, args);
    console.log(`      · skipped: ${found.missing}`);
    return test.skip();
  };
  const written = (name: string, content: object): string => {
    const file = join(folder, name);
    writeFileSync(file, JSON.stringify(content)); // YAML accepts JSON.
    return file;
  };

  it('have a well-formed configuration', async function () {
    expect(await check(this, 'promtool', 'check', 'config', join(FOLDER, 'prometheus.yml'))).to.include('SUCCESS');
  });

  it('have a well-formed example for Alertmanager', async function () {
    expect(await check(this, 'amtool', 'check-config', join(FOLDER, 'alertmanager.yml'))).to.include('SUCCESS');
  });

  it('fire each alert on time, not earlier, and never in a healthy system', async function () {
    const alertsOf = (file: string): string[] =>
      [...readFileSync(join(FOLDER, file), 'utf8').matchAll(/^ +- alert: (\w+)$/gm)].map(([, alert]) => String(alert));
    expect(Object.keys(CASES).sort(), 'each alert has its case').to.deep.equal(FILES.flatMap(alertsOf).sort());
    const testsOf = (alert: string): object[] => {
      const { bad, fires, waits, good } = CASES[alert] as Case;
      const silent = ['1m', fires, '12m'].map((time) => [time, false] as const);
      const early = waits === undefined ? [] : [[waits, false] as const];
      return [test(alert, bad, [...early, [fires, true]]), ...(good === null ? [] : [test(alert, good, silent)])];
    };
    // Each test evaluates every rule of its files, so an unneeded file costs as much as a needed file.
    const tests = FILES.map((file) =>
      written(`test-of-${file}`, {
        rule_files: [join(FOLDER, file)],
        evaluation_interval: `${STEP_S}s`,
        tests: alertsOf(file).flatMap(testsOf),
      }),
    );
    expect(await check(this, 'promtool', 'test', 'rules', ...tests)).to.include('SUCCESS');
  });

  it('stay silent in ten ordinary minutes with half of the orders unpaid', async function () {
    const expr = 'count(ALERTS{severity!="none"})';
    const silence = minutes(0, 12).map((time) => ({ expr, eval_time: time, exp_samples: [] }));
    const ordinary = {
      interval: `${STEP_S}s`,
      input_series: Object.entries(ORDINARY).map(([series, values]) => ({ series, values })),
      promql_expr_test: silence,
    };
    const file = written('ordinary.yml', {
      rule_files: FILES.map((name) => join(FOLDER, name)),
      evaluation_interval: `${STEP_S}s`,
      tests: [ordinary],
    });
    expect(await check(this, 'promtool', 'test', 'rules', file)).to.include('SUCCESS');
  });

  for (const { title, alert, series, fires, silent } of COURSES) {
    it(`${alert}: ${title}`, async function () {
      const file = written(`${alert}.yml`, {
        rule_files: [join(FOLDER, 'objectives.yml')],
        evaluation_interval: `${STEP_S}s`,
        tests: [
          test(alert, series, [
            ...fires.map((time) => [time, true] as const),
            ...silent.map((time) => [time, false] as const),
          ]),
        ],
      });
      expect(await check(this, 'promtool', 'test', 'rules', file)).to.include('SUCCESS');
    });
  }

  it('contain only board expressions that Prometheus understands', async function () {
    const exprs = BOARDS.flatMap(({ rows }) =>
      rows.flatMap(({ panels }) => panels.flatMap(({ lines }) => Object.values(lines))),
    );
    const rules = exprs.map((expr, index) => ({
      record: `board:expression:${index}`,
      expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$sale', '7'),
    }));
    expect(rules.length).to.be.greaterThan(60);
    const file = written('boards.yml', { groups: [{ name: 'boards', rules }] });
    expect(await check(this, 'promtool', 'check', 'rules', file)).to.include(`SUCCESS: ${rules.length} rules found`);
  });
});
