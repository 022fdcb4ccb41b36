import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { GROUPS_OF_CHECKS } from '../../src/core/doctor/report.js';
import { SUPPORTED_VERSIONS } from '../../src/core/doctor/versions.js';
import { RENDER_COMMAND, renderDoctorDocs } from './doctor-docs.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

describe('guard: docs/doctor.md says what seckill doctor looks at', () => {
  it('the page is what src/core/doctor generates', () => {
    const isSame = read('docs/doctor.md') === renderDoctorDocs();
    expect(isSame, `docs/doctor.md is out of date, run: ${RENDER_COMMAND}`).to.equal(true);
  });

  it('every line has its id, and its words are the ends of sentences', () => {
    for (const { id, looksAt, wrongIf, riskyIf } of GROUPS_OF_CHECKS.flatMap(({ checks }) => [...checks])) {
      expect(id).to.match(/^(settings|redis|mysql|rocketmq)\.[a-z]+(-[a-z]+)*$/);
      for (const text of [looksAt, wrongIf, riskyIf]) if (text !== undefined) expect(text, id).to.match(/[^.]$/);
      expect(wrongIf ?? riskyIf, `${id} can be something else than ok`).not.to.equal(undefined);
    }
  });

  it('the page on deployment asks for the same versions at least', () => {
    const page = read('docs/deployment.md');
    for (const { name, least } of [SUPPORTED_VERSIONS.redis, SUPPORTED_VERSIONS.mariadb]) {
      expect(page).to.include(`${name} ≥ ${least}`);
    }
  });
});
