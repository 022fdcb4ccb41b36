import type { Key } from '../../src/core/config/key.js';
import { PROGRAM_SECTIONS, SCHEMA, settingsOf, type SectionName } from '../../src/core/config/schema.js';

const INTRO = `# Configuration

Settings are environment variables, which a program reads at its start. One error names every wrong setting. A dash means:
not set by default. \`deploy/example.env\` has the settings to begin with.

A setting marked *file* may be in a [file](security.md#files): \`MYSQL_PASSWORD_FILE=/run/secrets/mysql\` replaces
\`MYSQL_PASSWORD\`. A setting of an earlier release causes only a warning.

This page is generated from \`src/core/config/schema.ts\`: \`npm run generate\`.
`;

/** Renders the configuration page in Markdown. */
export function renderConfigDocs(): string {
  const sections = (Object.keys(SCHEMA) as SectionName[]).filter((name) => name !== 'keeperMetrics'); // same settings as workerMetrics
  return [INTRO, ...sections.map(renderSection)].join('\n');
}

function renderSection(name: SectionName): string {
  const rows = settingsOf([name]).map(
    (key) => `| \`${key.env}\` | ${defaultOf(key)} | ${rangeOf(key)} | ${cell(key.doc)} |`,
  );
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
  if (section === 'workerMetrics') return ['worker', 'keeper'];
  const programs = Object.entries(PROGRAM_SECTIONS) as [string, readonly SectionName[]][];
  return programs.filter(([, sections]) => sections.includes(section)).map(([program]) => program);
}

function defaultOf({ fallback, optional, secret }: Key<unknown>): string {
  if (optional) return secret ? '– (secret)' : '–';
  if (fallback === undefined) return secret ? '*must be set (secret)*' : '*must be set*';
  return `\`${fallback}\``;
}

const rangeOf = ({ range, unit, fromFile }: Key<unknown>): string =>
  cell(`${unit ? `${range} ${unit}` : range}${fromFile ? ', *file*' : ''}`);
const cell = (text: string): string => text.replaceAll('|', '\\|');
