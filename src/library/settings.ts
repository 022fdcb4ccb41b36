import { ConfigError, isRemoved } from '../core/config/load.js';
import { fileVariable, type Key } from '../core/config/key.js';
import { PROGRAM_SECTIONS, SCHEMA, settingsOf, type SectionName } from '../core/config/schema.js';
import type { Live } from '../core/live.js';

/** Sections that only our own servers and programs read. */
const OWN_SECTIONS = ['shop', 'operators', 'workerMetrics', 'keeperMetrics', 'environment'] as const;
/** The app itself listens and serves `metrics()`, and its router creates no sales. */
const KEYS_LEFT_OUT = [
  'HTTP_HOST',
  'PORT',
  'HTTP_CONNECTIONS_MAX',
  'HTTP_KEEP_ALIVE_TIMEOUT_MS',
  'HTTP_CONNECTIONS_PER_ADDRESS_MAX',
  'METRICS_TOKEN',
  'SALE_CURRENCY',
] as const;

type ReadSection = Exclude<
  (typeof PROGRAM_SECTIONS)[keyof typeof PROGRAM_SECTIONS][number],
  (typeof OWN_SECTIONS)[number]
>;
type KeyIn<S extends SectionName> = S extends SectionName ? (typeof SCHEMA)[S][keyof (typeof SCHEMA)[S]] : never;
type SettingKey = Exclude<
  KeyIn<ReadSection>,
  { readonly isFixed: true } | { readonly env: (typeof KEYS_LEFT_OUT)[number] }
>;
type ValueOf<K> = K extends Key<infer T> ? (T extends 'true' | 'false' ? boolean : T extends Live ? string : T) : never;

/** Values for environment variables (docs/configuration.md). Missing ones are read from the environment. */
export type Settings = { readonly [K in SettingKey as K['env']]?: ValueOf<K> } & {
  readonly [K in Extract<SettingKey, { readonly fromFile: true }> as `${K['env']}_FILE`]?: string;
};

const KNOWN: ReadonlySet<string> = new Set(
  settingsOf((Object.keys(SCHEMA) as SectionName[]).filter(isRead))
    .filter(({ env }) => !KEYS_LEFT_OUT.some((name) => name === env))
    .flatMap(({ env, fromFile }) => (fromFile ? [env, fileVariable(env)] : [env])),
);

function isRead(section: SectionName): boolean {
  const isOwn = OWN_SECTIONS.some((name) => name === section);
  return !isOwn && Object.values(PROGRAM_SECTIONS).some((names: readonly SectionName[]) => names.includes(section));
}

/** Checks settings for apps without types. Warns of old settings. @throws ConfigError for unknown names */
export function assertKnown(settings: object): void {
  const unknown = Object.keys(settings).filter((name) => !KNOWN.has(name) && !isRemoved(name));
  if (unknown.length === 0) return;
  throw new ConfigError(
    unknown.map((name) => {
      const known = similar(name);
      return `${name} is not a setting of the library${known === null ? '' : `: did you mean ${known}?`}`;
    }),
  );
}

/** Returns the most similar known name, or null if more than half of the letters differ. */
function similar(name: string): string | null {
  const [known] = [...KNOWN].sort((one, other) => distance(name, one) - distance(name, other));
  return known !== undefined && distance(name, known) <= name.length / 2 ? known : null;
}

const COMPARED_MAX = 64;

/** Counts how many letters must be inserted, deleted or replaced to turn one text into the other. */
function distance(one: string, other: string): number {
  const [letters, wanted] = [one.slice(0, COMPARED_MAX).toUpperCase().split(''), other.split('')];
  let row = [0, ...wanted.map((_, index) => index + 1)];
  for (const [at, letter] of letters.entries()) {
    const next = [at + 1];
    for (const [index, end] of wanted.entries()) {
      const [left = 0, above = 0, diagonal = 0] = [next[index], row[index + 1], row[index]];
      next.push(Math.min(left + 1, above + 1, diagonal + (letter === end ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
