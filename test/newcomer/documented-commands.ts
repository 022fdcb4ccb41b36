import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A command that a page of the documentation shows. */
export interface DocumentedCommand {
  readonly page: string;
  /** The command on one line, without its comment, with `seckill` for both ways to start it. */
  readonly text: string;
  /** Whether the command is in a sentence or a table, and may be the beginning of several commands. */
  readonly inline: boolean;
}

const PROGRAM = /^(npm|npx|node|seckill) /;
const FENCE = /^ *```(\w*)\n([\s\S]*?)^ *```$/gm;

/**
 * Returns every command of README.md, docs/api.md (whose purchase other pages need), CONTRIBUTING.md, bench/README.md
 * and the other pages.
 */
export function documentedCommands(): DocumentedCommand[] {
  const found = pages().flatMap(({ page, text }) => [
    ...[...text.matchAll(FENCE)]
      .filter(([, language, block]) => isShell(language as string, block as string))
      .flatMap(([, , block]) => logicalLines(block as string))
      .map((line) => ({ page, text: line, inline: false })),
    ...[...text.replace(FENCE, '').matchAll(/`([^`]+)`/g)]
      .map(([, code]) => (code as string).replace(/\s+/g, ' ').replace(/^\$ /, ''))
      .filter((code) => PROGRAM.test(code))
      .map((code) => ({ page, text: code, inline: true })),
  ]);
  return found.map((command) => ({ ...command, text: normalized(command.text) }));
}

const normalized = (text: string): string =>
  text
    .replace(/npm run (-s )?seckill -- ?|node dist\/cli\/main\.js ?/g, 'seckill ')
    .replace(/npm run -s /g, 'npm run ')
    .trim();

/** Returns whether a row of the table covers this command. A final `…` matches anything. */
export const isCoveredBy = (row: string, text: string): boolean =>
  row.endsWith('…') ? text.startsWith(row.slice(0, -1)) : row === text;

/** Returns whether the text is the beginning of the row. */
export const isPartOf = (row: string, text: string): boolean =>
  `${row} `.startsWith(`${text.replace(/ ?(…|<\w+>)$/, '')} `);

function pages(): { page: string; text: string }[] {
  const docs = readdirSync(fileURLToPath(new URL('../../docs', import.meta.url)), {
    recursive: true,
    encoding: 'utf8',
  });
  return [
    { page: 'README.md', url: new URL('../../README.md', import.meta.url) },
    { page: 'docs/api.md', url: new URL('../../docs/api.md', import.meta.url) },
    { page: 'CONTRIBUTING.md', url: new URL('../../CONTRIBUTING.md', import.meta.url) },
    { page: 'bench/README.md', url: new URL('../../bench/README.md', import.meta.url) },
    ...docs
      .filter((name) => name.endsWith('.md') && name !== 'api.md')
      .sort()
      .map((name) => ({ page: `docs/${name}`, url: new URL(`../../docs/${name}`, import.meta.url) })),
  ].map(({ page, url }) => ({ page, text: readFileSync(url, 'utf8') }));
}

/** A block without a language contains commands if one of its lines starts one of our programs. */
const isShell = (language: string, block: string): boolean =>
  ['sh', 'bash', 'console'].includes(language) ||
  (language === '' && block.split('\n').some((line) => PROGRAM.test(line)));

/** Joins lines that end in `\` and removes comments. */
const logicalLines = (block: string): string[] =>
  block
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .map((line) =>
      line
        .replace(/^\$ /, '')
        .replace(/(^|\s+)#\s.*$/, '')
        .trim(),
    )
    .filter((line) => line !== '');
