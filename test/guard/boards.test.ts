import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { BOARDS } from '../../deploy/grafana/boards.js';
import { dashboardOf } from '../../deploy/grafana/dashboard.js';
import { publishedMetrics } from '../helpers/published-metrics.js';

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

  it('every expression names metrics that a program publishes, and no two panels of a board have one title', async () => {
    const known = await publishedMetrics();
    for (const { uid, rows } of BOARDS) {
      const panels = rows.flatMap((row) => row.panels);
      expect(new Set(panels.map(({ title }) => title)).size, uid).to.equal(panels.length);
      for (const { title, lines } of panels) {
        for (const expr of Object.values(lines)) {
          const named = [...expr.matchAll(/\b(?:seckill|process|nodejs)_[a-z0-9_]+/g)].map(([name]) => name);
          expect(named, `${uid}, ${title}: ${expr}`).not.to.deep.equal([]);
          for (const name of named) expect([...known], `${uid}, ${title}`).to.include(name);
        }
      }
    }
  });
});
