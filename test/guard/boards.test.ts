import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { BOARDS } from '../../deploy/grafana/boards.js';
import { dashboardOf } from '../../deploy/grafana/dashboard.js';
import { mistakesIn, OF_PROMETHEUS, ownLabels, publishedMetrics, shownIn } from '../helpers/published-metrics.js';

const HOW = 'UPDATE_BOARDS=1 npx mocha test/guard/boards.test.ts';

describe('guard: boards of Grafana', () => {
  it('the files are what deploy/grafana/boards.ts says', () => {
    for (const board of BOARDS) {
      const file = new URL(`../../deploy/grafana/${board.uid}.json`, import.meta.url);
      const made = `${JSON.stringify(dashboardOf(board), null, 2)}\n`;
      if (process.env.UPDATE_BOARDS) writeFileSync(file, made);
      else expect(existsSync(file) && readFileSync(file, 'utf8'), `${board.uid}.json, run: ${HOW}`).to.equal(made);
    }
  });

  it('every expression names metrics that a program publishes, by labels that they have; no two panels have one title', async () => {
    const published = await publishedMetrics();
    for (const { uid, rows, variable } of BOARDS) {
      const panels = rows.flatMap((row) => row.panels);
      expect(new Set(panels.map(({ title }) => title)).size, uid).to.equal(panels.length);
      for (const { title, lines } of panels) {
        for (const [legend, expr] of Object.entries(lines)) {
          const where = `${uid}, ${title}: ${expr}`;
          expect(mistakesIn(expr, shownIn(legend), published), where).to.deep.equal([]);
        }
      }
      if (variable) expect(mistakesIn(variable.metric, [variable.label], published), uid).to.deep.equal([]);
    }
  });

  it('no metric has a label that Prometheus gives itself', async () => {
    const labels = await ownLabels();
    expect(labels.get('seckill_keeper_job_seconds')).to.deep.equal(['task', 'result']);
    for (const [name, own] of labels)
      expect(
        own.filter((label) => OF_PROMETHEUS.includes(label)),
        name,
      ).to.deep.equal([]);
  });

  it('labels that a pod has as well stay ours where the operator of Prometheus reads them', async () => {
    expect([...(await ownLabels()).values()].flat()).to.include('endpoint');
    const monitor = new URL('../../deploy/helm/seckill/templates/podmonitor.yaml', import.meta.url);
    expect(readFileSync(monitor, 'utf8')).to.match(/^ +honorLabels: true$/m);
  });

  it('a metric that no program has, a label that it has not, and one that was summed away are noticed', async () => {
    const published = await publishedMetrics();
    const found = (expr: string, legend = ''): string[] => mistakesIn(expr, shownIn(legend), published);
    expect(found('max(seckill_made_up)')).to.deep.equal(['no program publishes seckill_made_up']);
    expect(found('sum by (topic) (seckill_mq_lag{grup="a"})', '{{topic}}')).to.deep.equal([
      'seckill_mq_lag has no label grup',
    ]);
    expect(found('max by (colour) (seckill_mq_lag)')).to.deep.equal(['seckill_mq_lag has no label colour']);
    expect(found('max(seckill_mq_lag)', '{{group}}')).to.deep.equal(['group is summed away']);
    expect(found('seckill_mq_lag', '{{sale}}')).to.deep.equal(['seckill_mq_lag has no label sale']);
    expect(found('vector(1)')).to.deep.equal(['it names no metric']);
  });
});
