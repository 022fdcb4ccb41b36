import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { PROBLEMS, type ProblemCode } from '../../src/http/problem.js';
import { routesOf } from '../../src/http/routes/index.js';

const page = readFileSync(new URL('../../docs/buying.md', import.meta.url), 'utf8');
const runbook = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8');
const alerts = ['alerts.yml', 'objectives.yml']
  .map((name) => readFileSync(new URL(`../../deploy/prometheus/${name}`, import.meta.url), 'utf8'))
  .join('\n');

describe('guard: docs/buying.md says what a client may hear', () => {
  /** Of those that buy; a payment provider and load balancers have a page of their own. */
  const codes = new Set(
    routesOf('buyers')
      .filter(({ label }) => label !== 'payment' && label !== 'probe')
      .flatMap((route) => route.codes),
  );
  const rows = [...page.matchAll(/^\| (\d{3}) \| `(\w+)` \| ([^|]+) \| (yes|no) \|/gm)].map(
    ([, status, code, , again]) => ({ status: Number(status), code: code as ProblemCode, again: again === 'yes' }),
  );

  it('every code of a route for buyers has one row, and no other has', () => {
    expect(rows.map(({ code }) => code)).to.have.members([...codes]);
  });

  it('with its status, and whether the same request may do better', () => {
    const told = rows.map(({ code }) => ({
      status: PROBLEMS[code].status,
      code,
      again: PROBLEMS[code].retryAfterMs !== null,
    }));
    expect(rows).to.deep.equal(told);
  });
});

describe('guard: docs/runbook.md has every alert', () => {
  const severities = new Map(
    [...alerts.matchAll(/- alert: (\w+)[\s\S]*?severity: (\w+)/g)].map(([, name, severity]) => [name, severity]),
  );
  const sections = [...runbook.matchAll(/^### (\w+)\n\n\*(Page|Ticket)\.\*/gm)];

  it('under its name, with whom it wakes', () => {
    const told = new Map(sections.map(([, name, severity]) => [name, severity?.toLowerCase()]));
    expect([...told].sort()).to.deep.equal([...severities].sort());
  });
});
