import { fileVariable, type Key } from '../../src/core/config/key.js';
import { PROGRAM_SECTIONS, SCHEMA, settingsOf, type SectionName } from '../../src/core/config/schema.js';

type AnyKey = Key<string | number>;

/** Settings that the chart sets itself or that only tests use. */
const LEFT_OUT = /^(HTTP_HOST|PORT|(OPERATORS|METRICS)_(HOST|PORT)|NODE_ENV|TEST_OVERRIDES)$/;
/** The sections that each command reads. */
export const READ_BY: Readonly<Record<string, readonly SectionName[]>> = {
  ...PROGRAM_SECTIONS,
  migrate: ['mysql'],
  topics: ['repair', 'brokerAccess'],
};

/** Renders deploy/helm/seckill/settings.yaml. */
export function renderHelmSettings(): string {
  const readers = Object.entries(READ_BY).map(([name, sections]) => [name, keysOf(sections)] as const);
  const groups = new Map<string, AnyKey[]>();
  for (const key of keysOf(Object.keys(SCHEMA) as SectionName[]).values()) {
    if (LEFT_OUT.test(key.env)) continue;
    const group = readers.filter(([, keys]) => keys.has(key.env)).map(([name]) => name);
    groups.set(group.join(', '), [...(groups.get(group.join(', ')) ?? []), key]);
  }
  const lines = [...groups].flatMap(([group, keys]) => {
    const settings = keys.flatMap(({ env, secret, fromFile }) => [
      ...(secret ? [] : [env]),
      ...(fromFile ? [fileVariable(env)] : []),
    ]);
    const secrets = keys.filter(({ secret }) => secret).map(({ env, optional }) => `${env}: ${!optional}`);
    return [
      `- readers: [${group}]`,
      filled(`settings: [${settings.join(', ')}]`),
      filled(`secrets: {${secrets.join(', ')}}`),
    ];
  });
  return `# Made from src/core/config/schema.ts: npm run generate
# \`settings\` are the values that each reader gets. \`secrets\` are the keys of the Secret that it gets, and whether it needs them.
${lines.join('\n')}\n`;
}

/** Returns the keys of the given sections by name. */
export const keysOf = (sections: readonly SectionName[]): Map<string, AnyKey> =>
  new Map((settingsOf(sections) as AnyKey[]).map((key) => [key.env, key]));

/** Breaks a value into lines of at most 120 characters. */
const filled = (text: string): string =>
  text
    .replace(/(.{1,116})(?:(?<=,) |$)/g, '    $1\n')
    .trimEnd()
    .slice(2);
