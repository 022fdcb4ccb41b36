import type { Key } from '../../src/core/config/key.js';
import { PROGRAM_SECTIONS, SCHEMA, type SectionName } from '../../src/core/config/schema.js';

const INTRO = `# Configuration

Every key is an environment variable. It is read once, at the start, and one error names every bad key. A key without a
default must be set. Secrets are never shown. Sections follow the path of a purchase; a program reads only the sections
that name it.

Where it says *or a file*, the value may stand in a file instead: \`MYSQL_PASSWORD_FILE=/run/secrets/mysql\` in the place of
\`MYSQL_PASSWORD\`. The end of its last line is not part of it. Passwords and certificates of the servers are read again when
they have changed ([secure connections](security.md#connections)); anything else once.

This page is made from \`src/core/config/schema.ts\`: \`npm run generate\`.
`;

/** The page on configuration, in Markdown. */
export function renderConfigDocs(): string {
  const sections = Object.keys(SCHEMA) as SectionName[];
  return [INTRO, ...sections.map(renderSection)].join('\n');
}

function renderSection(name: SectionName): string {
  const keys = Object.values(SCHEMA[name]) as Key<unknown>[];
  const rows = keys.map((key) => `| \`${key.env}\` | ${defaultOf(key)} | ${rangeOf(key)} | ${cell(key.doc)} |`);
  return [
    `## ${name}`,
    '',
    `Read by: ${programsOf(name).join(', ')}.`,
    '',
    '| key | default | range | meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function programsOf(section: SectionName): string[] {
  const programs = Object.entries(PROGRAM_SECTIONS) as [string, readonly SectionName[]][];
  return programs.filter(([, sections]) => sections.includes(section)).map(([program]) => program);
}

function defaultOf({ fallback, optional, secret }: Key<unknown>): string {
  if (optional) return secret ? '*not set (secret)*' : '*not set*';
  if (fallback === undefined) return secret ? '*must be set (secret)*' : '*must be set*';
  return `\`${fallback}\``;
}

const rangeOf = ({ range, unit, fromFile }: Key<unknown>): string =>
  cell(`${unit ? `${range} ${unit}` : range}${fromFile ? ', *or a file*' : ''}`);
const cell = (text: string): string => text.replaceAll('|', '\\|');
