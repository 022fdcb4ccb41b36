import type { MutantResult } from './run-mutant.js';

/** More of what was said would only repeat it. */
const SAID_SHOWN = 300;

/** The part of what was said that names the mutant, with what stands around it as far as there is room. */
export function saidShown({ mutant, said }: MutantResult): string {
  const at = said.search(mutant.says);
  const from = at < SAID_SHOWN / 2 ? 0 : at;
  const part = said.slice(from, from + SAID_SHOWN).replace(/\s+/g, ' ');
  return `${from > 0 ? '… ' : ''}${part}${from + SAID_SHOWN < said.length ? ' …' : ''}`;
}

const invariantsOf = ({ mutant }: MutantResult): string => mutant.invariants.join(' ') || '–';

/** `15 of 15 planted bugs were caught`, and those that were not. */
export function totalLine(results: readonly MutantResult[]): string {
  const others = results.filter(({ verdict }) => verdict !== 'caught');
  const told = others.map(({ mutant, verdict }) => `${mutant.name} ${verdict}`);
  const caught = `${results.length - others.length} of ${results.length} planted bugs were caught`;
  return told.length === 0 ? caught : `${caught}; ${told.join(', ')}`;
}

const HEADER = ['mutant', 'invariants', 'row', 'verdict', 'what it said'];
const CELL_MAX = 90;

/** For a terminal. */
export function table(results: readonly MutantResult[]): string {
  const rows = results.map((one) => [
    ...[one.mutant.name, invariantsOf(one), one.row, one.verdict],
    saidShown(one).slice(0, CELL_MAX),
  ]);
  const widths = HEADER.map((title, column) =>
    Math.max(title.length, ...rows.map((cells) => cells[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [line(HEADER), widths.map((width) => '─'.repeat(width)).join('  '), ...rows.map(line)].join('\n');
}

/** A page of markdown. */
export function reportPage(results: readonly MutantResult[], date: string, tookMs: number): string {
  const rows = results.map((result) => {
    const { mutant, row, verdict } = result;
    const said = saidShown(result).replaceAll('|', '\\|');
    return `| ${mutant.name} | ${mutant.breaks} | ${invariantsOf(result)} | ${row} | ${verdict} | ${said} |`;
  });
  const lines = [
    '# Planted bugs',
    '',
    `**${totalLine(results)}**`,
    '',
    `${date}, ${Math.round(tookMs / 1000)} s in all. Again: \`npm run chaos:mutants\`.`,
    '',
    '| mutant | the rule that it breaks | invariants | row | verdict | what it said |',
    '|---|---|---|---|---|---|',
    ...rows,
  ];
  return `${lines.join('\n')}\n`;
}
