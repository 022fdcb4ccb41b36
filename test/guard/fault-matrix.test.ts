import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { idsOf } from '../chaos/scenario.js';
import { SCENARIOS } from '../chaos/scenarios/list.js';

const ROOT = new URL('../../', import.meta.url);
const FOLDERS = ['unit', 'contract', 'lua', 'integration', 'newcomer', 'hostile', 'time'];
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');

/** Returns the text in brackets at the end of each title in the folder. */
function bracketsOf(folder: string): string[] {
  const files = readdirSync(new URL(`test/${folder}/`, ROOT), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.test.ts'))
    .flatMap((file) => [...read(`test/${folder}/${file}`).matchAll(/\b(?:it|describe)\(\s*(['`])((?:(?!\1)[^\n])*)/g)])
    .map(([, , title]) => /\[([^\]]+)\]$/.exec(title as string)?.[1] ?? ''); // L4 is also a degradation level
}

describe('guard: the fault matrix', () => {
  const rows = [...read('docs/fault-matrix.md').matchAll(/^\| ([TGRMDCSLP]\d+) \|/gm)].map(([, id]) => id as string);

  it('has more than 60 rows, and every scenario has a unique name', () => {
    expect(rows.length).to.be.greaterThan(60);
    expect(new Set(SCENARIOS.map(({ name }) => name)).size).to.equal(SCENARIOS.length);
  });

  it('has one row for each id that a test names, and no other row', () => {
    const named = [...FOLDERS.flatMap(bracketsOf), ...SCENARIOS.flatMap(idsOf)];
    const ids = new Set(named.flatMap((text) => text.match(/\b[TGRMDCSLP]\d{1,2}\b/g) ?? []));
    expect(new Set(rows).size).to.equal(rows.length);
    expect(
      rows.filter((id) => !ids.has(id)),
      'rows without a test',
    ).to.deep.equal([]);
    expect(
      [...ids].filter((id) => !rows.includes(id)),
      'ids without a row',
    ).to.deep.equal([]);
  });
});
