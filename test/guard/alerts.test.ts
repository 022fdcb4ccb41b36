import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Registry } from 'prom-client';
import { parse } from 'yaml';
import { BOARDS } from '../../deploy/grafana/boards.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { createAdmissionMetrics } from '../../src/admission/metrics.js';
import { SCHEMA, settingsOf, type SectionName } from '../../src/core/config/schema.js';
import { readAlertRules } from '../../src/core/conditions.js';
import { durationText } from '../../src/core/duration.js';
import { TOPICS } from '../../src/core/topics.js';
import { OVERDUE_MS, WATCHED_STATES } from '../../src/core/waiting-states.js';
import { createSignatureMetrics } from '../../src/rocketmq/metrics.js';
import { FAULTS } from '../chaos/on-call/faults.js';
import { mistakesIn, OF_PROMETHEUS, ownLabels, publishedMetrics, shownIn } from '../helpers/published-metrics.js';

/** Alerts that the console does not show, with the reason why a process cannot evaluate them. */
const NEEDS_PROMETHEUS: Readonly<Record<string, string>> = {
  SeckillForgedMessages: 'a rise over ten minutes',
  SeckillPurchasesRefusedByRedis: 'a rise over ten minutes',
  SeckillHookGaveUp: 'a rise over ten minutes',
  SeckillPaymentsDeclined: 'a share over ten minutes',
  SeckillCompensationGivenUp: 'compared with a day ago',
  SeckillHotSaleNotSplit: 'compared with an hour ago',
  SeckillReconcileOld: 'the newest run of all keepers, or no run',
  SeckillMessagesNotWatched: 'an absent metric',
  SeckillApiAbsent: 'an absent metric. Without an api there is no console.',
  SeckillBuyersNotServed: 'a scrape through the proxy',
  SeckillCertificateExpires: 'a probe of the shop',
  SeckillCertificateExpiresSoon: 'a probe of the shop',
  SeckillWatchdog: 'always fires',
  SeckillWorkerAbsent: 'an absent metric. The api reports missing workers under this name.',
  SeckillKeeperAbsent: 'an absent metric. The api reports missing keepers under this name.',
  SeckillProgramDown: 'a failed scrape. The api reports programs that vanished under this name.',
  SeckillVersionsDiffer: 'the metrics of several programs',
  SeckillWaitingRoomRate: 'a share over five minutes',
  SeckillKeeperJobFails: 'a rise over five minutes',
  SeckillIssuerKeysNotRead: 'a rise over a quarter of an hour',
  SeckillOrdersLate: 'rates over hours',
  SeckillOrdersLateSlowly: 'rates over hours',
  SeckillPurchasesFail: 'rates over hours',
  SeckillPurchasesFailSlowly: 'rates over hours',
  SeckillBuyersWait: 'a quantile over minutes',
};

interface Rule {
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: { readonly severity?: string };
  readonly annotations?: { readonly summary: string; readonly runbook_url: string };
}

const read = (path: string): string => readFileSync(join(REPO_DIR, path), 'utf8');
const texts = ['alerts', 'objectives'].map((name) => read(`deploy/prometheus/${name}.yml`));
const rules = texts.flatMap((text) => (parse(text) as { groups: { rules: Rule[] }[] }).groups.flatMap((g) => g.rules));
/** The alerts that programs evaluate themselves. */
const judged = readAlertRules(texts[0] as string);
const alerts = new Map(rules.flatMap((rule) => (rule.alert === undefined ? [] : [[rule.alert, rule] as const])));

describe('guard: alerts and boards', () => {
  it('use only published metrics and their labels', async () => {
    const published = await publishedMetrics();
    expect(mistakesIn('max(seckill_made_up)', [], published)).to.deep.equal(['no program publishes seckill_made_up']);
    expect(mistakesIn('max(seckill_mq_lag)', ['group'], published)).to.deep.equal(['group is summed away']);
    for (const { expr } of rules.filter(({ expr: text }) => text.includes('seckill_')))
      expect(mistakesIn(expr, [], published), expr).to.deep.equal([]);
    const named = texts.flatMap((text) => [...text.matchAll(/\bseckill_[a-z_]*[a-z]/g)].map(([name]) => name));
    for (const name of named) expect(published.has(name) || published.has(`${name}_count`), name).to.equal(true);
    for (const { uid, rows, variable } of BOARDS) {
      const panels = rows.flatMap((row) => row.panels);
      expect(new Set(panels.map(({ title }) => title)).size, uid).to.equal(panels.length);
      for (const { title, lines } of panels)
        for (const [legend, expr] of Object.entries(lines))
          expect(mistakesIn(expr, shownIn(legend), published), `${uid}, ${title}: ${expr}`).to.deep.equal([]);
      if (variable) expect(mistakesIn(variable.metric, [variable.label], published), uid).to.deep.equal([]);
    }
  });

  it('give no metric a label that Prometheus or its operator adds', async () => {
    const labels = [...(await ownLabels()).values()].flat();
    expect(labels).to.include('endpoint');
    expect(labels.filter((label) => OF_PROMETHEUS.includes(label))).to.deep.equal([]);
    expect(read('deploy/helm/seckill/templates/podmonitor.yaml')).to.match(/^ +honorLabels: true$/m);
  });

  it('are read by programs as by Prometheus: name, time, severity and summary', () => {
    const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
    for (const { name, forMs, severity, summary } of judged) {
      const { for: time = '0s', labels, annotations } = alerts.get(name) as Rule;
      const expected = { forMs: parseInt(time) * (unitMs[time.at(-1) as string] ?? NaN), ...labels, ...annotations };
      expect(expected, name).to.include({ forMs, severity, summary });
    }
  });

  it('are evaluated by programs unless they need Prometheus', () => {
    expect([...judged.map(({ name }) => name), ...Object.keys(NEEDS_PROMETHEUS)]).to.have.members([...alerts.keys()]);
  });

  it('link to their own section of the runbook, relative to its folder', () => {
    for (const [name, { annotations }] of alerts)
      expect(annotations?.runbook_url, name).to.equal(`runbook.md#${name.toLowerCase()}`);
  });

  it('have a section in docs/runbook.md that begins with the severity, then with what differs from the defaults', () => {
    const runbook = read('docs/runbook.md');
    const form =
      /^### (Seckill\w+)\n\n\*(Page|Ticket|None)\.\*(?: Sale: .+?[.;])?(?: Buyers: .+?[."])?(?: Ends: .+\.)?\n\n\S/gm;
    const sections = [...runbook.matchAll(form)];
    expect(sections.map(([, name, whom]) => [name, whom?.toLowerCase()])).to.have.deep.members(
      [...alerts].map(([name, { labels }]) => [name, labels?.severity]),
    );
    expect(runbook).not.to.match(/Sale: keep it open\.|Buyers: nothing\.|Ends: in seconds\.$/m);
  });

  it('have first looks in the runbook, and `npm run chaos -- on-call` runs exactly these', () => {
    const runbook = read('docs/runbook.md');
    const sections = new Map(
      runbook
        .split(/^##+ /m)
        .map((text) => [text.slice(0, text.indexOf('\n')).toLowerCase().replaceAll(' ', '-'), text]),
    );
    for (const { name, alerts: expected, looks = [] } of FAULTS) {
      if (expected.length > 0) expect(looks, `looks of "${name}"`).not.to.be.empty;
      const own = expected.map((alert) => sections.get(alert.toLowerCase()) ?? '').join('\n');
      const linked = [...own.matchAll(/\]\(#([\w-]+)\)/g)].map(([, anchor]) => sections.get(anchor as string) ?? '');
      const text = [own, ...linked, sections.get('first-three-looks')].join('\n');
      const commands = [...text.matchAll(/`([^`\n]+)`|^([^`#\n]+?)(?: +#.*)?$/gm)].map(
        ([, inline, line]) => inline ?? line,
      );
      for (const { run } of looks) expect(commands, `looks of "${name}"`).to.include(run);
    }
  });

  it('have an alert for each waiting state, and a waiting state for each alert on seckill_overdue', () => {
    const watched = [...(texts[0] as string).matchAll(/seckill_overdue\{state="(\w+)"\}/g)].map(([, state]) => state);
    expect(watched).to.have.members([...WATCHED_STATES]);
    for (const metric of [
      'reconcile_findings',
      'compensation_jobs{state="failed_final"}',
      'reconcile_last_run_seconds',
      'forged_messages_total',
      'admission_breaker',
      'admission_rules_newest_version',
    ])
      expect(
        rules.some(({ expr }) => expr.includes(`seckill_${metric}`)),
        metric,
      ).to.equal(true);
  });

  it('have metrics of forged messages and admission before the first event', async () => {
    const registry = new Registry();
    createSignatureMetrics(registry);
    const { breakerMoved, rulesTaken, rulesRefused } = createAdmissionMetrics(registry);
    breakerMoved('mysql', 'open');
    rulesTaken(2);
    rulesRefused(3);
    expect((await registry.metrics()).split('\n')).to.include.members([
      ...Object.values(TOPICS).map((topic) => `seckill_forged_messages_total{topic="${topic}",reason="unsigned"} 0`),
      'seckill_admission_breaker{dependency="redis"} 0',
      'seckill_admission_breaker{dependency="mysql"} 2',
      'seckill_admission_rules_version 2',
      'seckill_admission_rules_newest_version 3',
    ]);
  });

  it('match docs/recovery.md: each watched state has a row with its deadline, and deadlines in capitals are settings', () => {
    const [, table = ''] = read('docs/recovery.md').split('## Waiting states');
    const rows = [...table.matchAll(/^\| `\w+` \| .* \| (.*) \| .* \| `(\w+)` \|$/gm)];
    const deadlines = rows.map(([, deadline = '', watchedAs = '']) => ({ deadline, watchedAs }));
    expect([...new Set(deadlines.map(({ watchedAs }) => watchedAs))]).to.have.members([...WATCHED_STATES, 'reconcile']);
    for (const [state, ms] of Object.entries(OVERDUE_MS)) {
      const text = state === 'units_in_transfer' ? 'some seconds' : durationText(ms);
      const { deadline } = deadlines.find(({ watchedAs }) => watchedAs === state) ?? {};
      expect(deadline?.split(' after ')[0], state).to.equal(text);
    }
    const keys = settingsOf(Object.keys(SCHEMA) as SectionName[]).map(({ env }) => env);
    const named = deadlines.map(({ deadline }) => deadline).filter((deadline) => /^[A-Z_]+$/.test(deadline));
    expect(named).to.include('RETIRE_AFTER_MS');
    expect(keys).to.include.members(named);
  });
});
