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
  const rows = [...read('docs/fault-matrix.md').matchAll(/^\| ([TGRMDCSLP]\d+) \|.*\| ([^|]+) \|$/gm)];
  const titles = new Map([
    ...FOLDERS.map((folder) => [folder, bracketsOf(folder)] as const),
    ['scenario', SCENARIOS.filter(({ fast }) => fast).flatMap(idsOf)], // run by test/scenario/scenarios.test.ts
    ['chaos', SCENARIOS.filter(({ fast }) => !fast).flatMap(idsOf)], // run only by `npm run chaos -- run`
  ]);
  const places = ['unit', 'contract', 'lua', 'integration', 'scenario', 'chaos', 'newcomer', 'hostile', 'time'];

  it('has more than 60 rows, and every scenario has a unique name', () => {
    expect(rows.length).to.be.greaterThan(60);
    expect(new Set(SCENARIOS.map(({ name }) => name)).size).to.equal(SCENARIOS.length);
  });

  it('lists exactly where each row is tested', () => {
    for (const [, id, listed] of rows as unknown as [string, string, string][]) {
      if (listed.startsWith('`')) continue; // tested by hand
      const tested = places.filter((place) =>
        titles.get(place)?.some((title) => new RegExp(`\\b${id}\\b`).test(title)),
      );
      expect(listed, id).to.equal(tested.length === 0 ? 'planned' : tested.join(', '));
    }
  });

  it('has a row for every id that a test names', () => {
    const known = new Set(rows.map(([, id]) => id));
    const named = new Set([...titles.values()].flat().flatMap((title) => title.match(/\b[TGRMDCLP]\d{1,2}\b/g) ?? []));
    expect([...named].filter((id) => !known.has(id))).to.deep.equal([]);
  });
});
