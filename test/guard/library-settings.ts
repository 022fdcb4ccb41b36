import { fileVariable, type Key } from '../../src/core/config/key.js';
import { PROGRAM_SECTIONS, SCHEMA, settingsOf, type SectionName } from '../../src/core/config/schema.js';

/** Sections that only our own servers and programs read. */
const OWN_SECTIONS: readonly SectionName[] = ['shop', 'operators', 'workerMetrics', 'keeperMetrics', 'environment'];
const KEYS_LEFT_OUT: readonly string[] = [
  'HTTP_HOST',
  'PORT',
  'HTTP_CONNECTIONS_MAX',
  'HTTP_KEEP_ALIVE_TIMEOUT_MS',
  'HTTP_CONNECTIONS_PER_ADDRESS_MAX',
  'METRICS_TOKEN', // the app serves `metrics()` itself
  'SALE_CURRENCY', // the router creates no sales
];

const HEADER = `// Made from src/core/config/schema.ts: npm run generate

/** Values for the variables of the environment, by their names. One that is left out is read from the environment. */
export interface Settings {
`;

/** Renders the library settings as TypeScript, each with its description. */
export function renderLibrarySettings(): string {
  const read = new Set<SectionName>(Object.values(PROGRAM_SECTIONS).flat());
  const sections = (Object.keys(SCHEMA) as SectionName[]).filter((name) => read.has(name));
  const keys = settingsOf(sections.filter((name) => !OWN_SECTIONS.includes(name))).filter(
    ({ env }) => !KEYS_LEFT_OUT.includes(env),
  );
  return `${HEADER}${keys.map(fieldOf).join('')}}\n`;
}

function fieldOf(key: Key<unknown>): string {
  const { env, doc, range, unit, words, fromFile } = key;
  const amount = unit ? `${range} ${unit}` : range;
  const facts = [...(words === undefined ? [amount] : []), defaultOf(key)].join('; ');
  const file = `  /** A file that holds ${env}. */\n  readonly ${fileVariable(env)}?: string;\n`;
  return `  /** ${doc} (${facts}) */\n  readonly ${env}?: ${typeOf(key)};\n${fromFile ? file : ''}`;
}

const typeOf = ({ words, fallback }: Key<unknown>): string => {
  if (words?.join() === 'true,false' || words?.join() === 'false,true') return 'boolean';
  if (words !== undefined) return words.map((word) => `'${word}'`).join(' | ');
  return typeof fallback === 'number' ? 'number' : 'string';
};

const defaultOf = ({ fallback, optional }: Key<unknown>): string => {
  if (optional) return 'not set by default';
  return fallback === undefined ? 'it must be set, here or in the environment' : `default ${fallback}`;
};
