import { ConfigError, loadConfig, settingText, type Environment } from '../../core/config/load.js';
import { PROGRAM_SECTIONS, settingsOf, type Section, type SectionName } from '../../core/config/schema.js';
import { readKeyList } from '../../core/hmac.js';
import type { ProgramKind } from '../../core/ports/program-reports.js';
import type { Secret, SettingsFacts } from './settings-checks.js';

// Collects the findings of `seckill doctor` about the settings, before it asks a server.

/** Reads a section. Null when its settings are not usable. */
export function sectionOf<S extends SectionName>(name: S, env: Environment): Section<S> | null {
  const read = readSection(name, env);
  return 'wrong' in read ? null : read.section;
}

/** Reads a section. `wrong` is a sentence that names its first unusable setting. */
export function readSection<S extends SectionName>(
  name: S,
  env: Environment,
): { readonly section: Section<S> } | { readonly wrong: string } {
  try {
    return { section: loadConfig([name], env)[name] };
  } catch (error) {
    if (error instanceof ConfigError) return { wrong: sentence(error.problems[0] ?? error.message) };
    throw error;
  }
}

export function settingsIn(env: Environment, programs: readonly ProgramKind[]): SettingsFacts {
  const operators = sectionOf('operators', env);
  const metrics = sectionOf('metrics', env);
  const workerMetrics = sectionOf('workerMetrics', env);
  return {
    problems: problemsIn(env, programs),
    secrets: secretsIn(env, programs),
    unsigned: sectionOf('messages', env)?.unsigned ?? 'refuse',
    listeners: [
      { name: 'OPERATORS_HOST', host: operators?.host ?? '', guarded: true },
      { name: 'METRICS_HOST', host: workerMetrics?.host ?? '', guarded: metrics?.token !== '' },
    ],
    node: process.versions.node,
  };
}

/** Returns the problems without their full stops. */
function problemsIn(env: Environment, programs: readonly ProgramKind[]): string[] {
  const problems = programs.flatMap((program) => {
    try {
      loadConfig<readonly SectionName[]>(PROGRAM_SECTIONS[program], env);
      return [];
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
  });
  return [...new Set(problems)].map(withoutPoint);
}

/** Returns every configured secret of these programs. */
function secretsIn(env: Environment, programs: readonly ProgramKind[]): Secret[] {
  const sections = new Set(programs.flatMap((program): readonly SectionName[] => PROGRAM_SECTIONS[program]));
  const keys = settingsOf([...sections]);
  const secrets = new Map(keys.filter(({ secret }) => secret).map((key) => [key.env, settingText(key, env)]));
  const needed = new Set(secrets.get('MYSQL_PASSWORD') ? [] : ['MYSQL_URL']);
  return [...secrets].flatMap(([name, value]) =>
    textsIn(name, value, needed.has(name)).map((text) => ({ name, text })),
  );
}

/**
 * Returns the passwords and keys in a setting. A public key has no secret, nor has a URL without a password unless
 * `isNeeded`.
 * @param isNeeded whether a URL without a password counts as an empty password
 */
function textsIn(name: string, value: string, isNeeded: boolean): string[] {
  const [isUrl, login = ''] = /^[a-z+]+:\/\/(?:([^@/]*)@)?/.exec(value) ?? [];
  if (isUrl !== undefined) {
    const password = login.includes(':') ? login.slice(login.indexOf(':') + 1) : '';
    return password === '' && !isNeeded ? [] : [decodeURIComponent(password)];
  }
  if (value === '' || value.includes('-----BEGIN')) return [];
  if (!name.endsWith('_KEYS')) return [value];
  try {
    return [...readKeyList(value).values()];
  } catch {
    return []; // `settings.read` reports the error
  }
}

export const sentence = (text: string): string =>
  `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? '' : '.'}`;

export const withoutPoint = (text: string): string => text.replace(/\.$/, '');
