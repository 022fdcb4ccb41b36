import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
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
  /** Series with which the alert never fires. */
  readonly good: Series;
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

const recorded = 'seckill_recorded_purchases_total{verdict="recorded"}';
const inTime = 'seckill_recorded_in_time_purchases_total';
const answers = (code: string): string => `seckill_http_answers_total{route="purchase",code="${code}"}`;
const answered = (le: string): string => `seckill_http_answer_seconds_bucket{route="purchase",class="ok",le="${le}"}`;

const CASES: Readonly<Record<string, Case>> = {
  SeckillPurchasesNotRecorded: overdue('batch_pending', '3m', '1m'),
  SeckillOrdersDoNotExpire: overdue('pending_payment', '3m', '1m'),
  SeckillClocksDiffer: level('seckill_clock_difference_seconds{server="mysql"}', 3, 2, '1m', '20s'),
  SeckillOutboxStalled: overdue('outbox', '2m', '30s'),
  SeckillDeadLetters: overdue('dead_letter', '10s'),
  SeckillForgedMessages: {
    bad: { 'seckill_forged_messages_total{topic="seckill-redrive",reason="unsigned"}': `0+0x6 1+0x100` },
    fires: '2m',
    waits: '50s',
    good: { 'seckill_forged_messages_total{topic="seckill-redrive",reason="unsigned"}': always(3) },
  },
  SeckillPurchasesRefusedByRedis: {
    bad: { [answers('refused_by_store')]: `0+0x6 1+0x100` },
    fires: '2m',
    waits: '50s',
    good: { [answers('refused_by_store')]: always(3) },
  },
  SeckillRefundsDue: overdue('refund', '10s'),
  SeckillPaymentsUnresolved: overdue('payment_open', '10s'),
  SeckillPaymentCases: overdue('payment_case', '10s'),
  SeckillPaymentsDeclined: {
    bad: {
      'seckill_charges_total{outcome="declined"}': growing(3),
      'seckill_charges_total{outcome="succeeded"}': growing(2),
    },
    fires: '10m',
    waits: '1m',
    good: {
      'seckill_charges_total{outcome="declined"}': growing(3),
      'seckill_charges_total{outcome="succeeded"}': growing(4),
    },
  },
  SeckillCompensationStalled: overdue('compensation', '3m', '1m'),
  SeckillRedisNearlyFull: {
    bad: {
      'seckill_redis_memory_used_bytes{server="a"}': always(81),
      'seckill_redis_memory_max_bytes{server="a"}': always(100),
    },
    fires: '6m',
    waits: '4m',
    good: {
      'seckill_redis_memory_used_bytes{server="a"}': always(79),
      'seckill_redis_memory_max_bytes{server="a"}': always(100),
    },
  },
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
  SeckillReconcileOld: level('seckill_reconcile_last_run_seconds', 1801, 300, '6m', '4m'),
  SeckillSaleHot: level('seckill_hot_sale_purchases_per_second{sale="7"}', 5001, 4999, '1m', '20s'),
  SeckillHotSaleNotSplit: {
    bad: { 'seckill_hot_sale_reshards_total{result="failed"}': `0+0x10 1+0x100` },
    fires: '2m',
    waits: '40s',
    good: { 'seckill_hot_sale_reshards_total{result="failed"}': always(0) },
  },
  SeckillSaleLocked: overdue('sale_locked', '10s'),
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
    bad: { 'seckill_mq_half_open{of="an older time"}': '1 stale' },
    fires: '6m',
    waits: '4m',
    good: { seckill_mq_half_open: always(0) },
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
  SeckillIssuerKeysNotRead: {
    bad: {
      'seckill_jwks_reads_total{issuer="i",result="failed"}': growing(1),
      'seckill_jwks_reads_total{issuer="i",result="read"}': always(5),
    },
    fires: '2m',
    good: {
      'seckill_jwks_reads_total{issuer="i",result="failed"}': growing(1),
      'seckill_jwks_reads_total{issuer="i",result="read"}': growing(1),
    },
  },
  SeckillAdmissionRulesRefused: {
    bad: {
      'seckill_admission_rules_newest_version{instance="a"}': always(3),
      'seckill_admission_rules_version{instance="a"}': always(2),
    },
    fires: '10s',
    good: {
      'seckill_admission_rules_newest_version{instance="a"}': always(3),
      'seckill_admission_rules_version{instance="a"}': always(3),
    },
  },
  SeckillOrdersLate: {
    bad: { [recorded]: growing(1000, 2), [inTime]: growing(980, 2) },
    fires: '10m',
    good: { [recorded]: growing(1000, 2), [inTime]: growing(999, 2) },
  },
  SeckillOrdersLateSlowly: {
    bad: { [recorded]: growing(1000, 7), [inTime]: growing(993, 7) },
    fires: '65m',
    good: { [recorded]: growing(1000, 7), [inTime]: growing(999, 7) },
  },
  SeckillPurchasesFail: {
    bad: { [answers('accepted')]: growing(980, 2), [answers('unavailable')]: growing(20, 2) },
    fires: '10m',
    good: {
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
      const early = waits === undefined ? [] : [[waits, false] as const];
      return [
        test(alert, bad, [...early, [fires, true]]),
        test(alert, good, [
          ['1m', false],
          [fires, false],
          ['12m', false],
        ]),
      ];
    };
    // Each test evaluates every rule of its files, so an unneeded file costs as much as the needed file.
    const tests = FILES.map((file) =>
      written(`test-of-${file}`, {
        rule_files: [join(FOLDER, file)],
        evaluation_interval: `${STEP_S}s`,
        tests: alertsOf(file).flatMap(testsOf),
      }),
    );
    expect(await check(this, 'promtool', 'test', 'rules', ...tests)).to.include('SUCCESS');
  });

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
