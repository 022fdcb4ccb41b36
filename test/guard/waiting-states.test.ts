import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { Registry } from 'prom-client';
import { SCHEMA } from '../../src/core/config/schema.js';
import type { Key } from '../../src/core/config/key.js';
import { TOPICS } from '../../src/core/topics.js';
import { WAITING_STATES, WATCHED_STATES } from '../../src/core/waiting-states.js';
import { createAdmissionMetrics } from '../../src/admission/metrics.js';
import { createSignatureMetrics } from '../../src/rocketmq/metrics.js';
import { mistakesIn, publishedMetrics } from '../helpers/published-metrics.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

describe('guard: every state that waits has a deadline, an end and an alert', () => {
  it('the rules of deploy/prometheus name only metrics that a program publishes, by labels that they have', async () => {
    const known = await publishedMetrics();
    const rules = ['alerts', 'objectives'].map((file) => read(`deploy/prometheus/${file}.yml`)).join('');
    const named = [...rules.matchAll(/\bseckill_[a-z_]*[a-z]/g)].map(([name]) => name);
    expect(named).to.have.length.above(WATCHED_STATES.length);
    // what a person is told to look at may be a histogram as a whole
    for (const name of named) expect(known.has(name) || known.has(`${name}_count`), name).to.equal(true);
    const exprs = [...rules.matchAll(/^ +expr: (.+(?:\n {10}.+)*)/gm)].map(([, expr = '']) => expr);
    expect(exprs).to.have.length.above(WATCHED_STATES.length);
    const mistakes = exprs.filter((expr) => expr.includes('seckill_')).flatMap((expr) => mistakesIn(expr, [], known));
    expect(mistakes).to.deep.equal([]);
  });

  it('every waiting state has an alert, and no alert is for another', () => {
    const labels = [...read('deploy/prometheus/alerts.yml').matchAll(/seckill_overdue\{state="(\w+)"\}/g)];
    expect(labels.map(([, state]) => state)).to.have.members([...WATCHED_STATES]);
  });

  it('what reconcile watches has an alert: what it finds, what it gives up, and whether it runs', () => {
    const sources = Object.values(WAITING_STATES).map(({ watchedAs }) => watchedAs);
    expect(sources).to.include('reconcile');
    const rules = read('deploy/prometheus/alerts.yml');
    for (const metric of [
      'reconcile_findings',
      'compensation_jobs{state="failed_final"}',
      'reconcile_last_run_seconds',
    ]) {
      expect(rules).to.contain(`seckill_${metric}`);
    }
  });

  it('forged messages have an alert, whose metric is there before the first one', async () => {
    expect(read('deploy/prometheus/alerts.yml')).to.match(/expr: .*increase\(seckill_forged_messages_total/);
    const registry = new Registry();
    createSignatureMetrics(registry);
    for (const topic of Object.values(TOPICS)) {
      const first = `seckill_forged_messages_total{topic="${topic}",reason="unsigned"} 0`;
      expect(await registry.metrics()).to.contain(first);
    }
  });

  it('admission has an alert for a breaker that opened and for rules that an api cannot use', async () => {
    const rules = read('deploy/prometheus/alerts.yml');
    for (const metric of ['seckill_admission_breaker', 'seckill_admission_rules_newest_version']) {
      expect(rules).to.match(new RegExp(`expr: (>-\\s+)?max.*\\b${metric}\\b`));
    }
    const registry = new Registry();
    const { breakerMoved, rulesTaken, rulesRefused } = createAdmissionMetrics(registry);
    breakerMoved('mysql', 'open');
    rulesTaken(2);
    rulesRefused(3);
    const text = await registry.metrics();
    expect(text, 'above the threshold of its alert').to.match(/^seckill_admission_breaker\{dependency="mysql"\} 2$/m);
    expect(text, 'in force').to.match(/^seckill_admission_rules_version 2$/m);
    expect(text, 'above it').to.match(/^seckill_admission_rules_newest_version 3$/m);
    expect(text, 'seen before it moves').to.match(/^seckill_admission_breaker\{dependency="redis"\} 0$/m);
  });

  it('docs/waiting-states.md has the table of src/core/waiting-states.ts', () => {
    const page = read('docs/waiting-states.md');
    for (const [state, { waits, deadline, endedBy, watchedAs }] of Object.entries(WAITING_STATES)) {
      expect(page).to.contain(`| \`${state}\` | ${waits} | ${deadline} | ${endedBy} | \`${watchedAs}\` |`);
    }
  });

  it('a deadline that looks like a key of the configuration is one', () => {
    const keys = Object.values(SCHEMA).flatMap((section) => Object.values(section) as Key<unknown>[]);
    const envs = keys.map(({ env }) => env);
    for (const { deadline } of Object.values(WAITING_STATES)) {
      if (/^[A-Z_]+$/.test(deadline)) expect(envs).to.include(deadline);
    }
  });
});
