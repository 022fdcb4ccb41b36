import { ConfigError, loadConfig, settingText, type Environment } from '../../core/config/load.js';
import { PROGRAM_SECTIONS, settingsOf, type Section, type SectionName } from '../../core/config/schema.js';
import { listed, ok, risky, wrong, type Check } from '../../core/doctor/check.js';
import { kindOfAddress } from '../../core/doctor/reach.js';
import { judgeVersion } from '../../core/doctor/versions.js';
import { readKeyList } from '../../core/hmac.js';
import type { ProgramKind } from '../../core/ports/program-reports.js';
import { sentence, withoutPoint } from '../../core/text.js';

/** Settings of this shell, as the programs would read them. */
export interface SettingsFacts {
  /** Mistakes in the settings, one sentence each. */
  readonly problems: readonly string[];
  /** Secrets by variable, never printed. Each key of a list and the password of a URL is a separate entry. */
  readonly secrets: readonly Secret[];
  /** The setting MESSAGE_UNSIGNED. */
  readonly unsigned: 'refuse' | 'accept';
  /** Addresses at which our own programs listen for people and monitoring. */
  readonly listeners: readonly Listener[];
  /** For example `20.19.0`. */
  readonly node: string;
}

interface Secret {
  readonly name: string;
  readonly text: string;
}

interface Listener {
  /** The variable that sets the address. */
  readonly name: string;
  readonly host: string;
  /** Whether every request there needs a token. */
  readonly guarded: boolean;
}

const LENGTH_MIN = 16;
/** A shorter secret is guessed within minutes, wherever attackers can try it. */
const LENGTH_LEAST = 8;
/** Minimum number of different characters. A random secret of 16 characters almost always has more. */
const DIFFERENT_MIN = 8;
/** Words that attackers try first, even with digits and signs after them. Some are in manuals. */
const WELL_KNOWN = new Set([
  ...['password', 'passwd', 'secret', 'changeme', 'change', 'example', 'default', 'guest', 'test', 'letmein', 'qwerty'],
  ...['admin', 'root', 'user', 'redis', 'mysql', 'mariadb', 'rocketmq', 'seckill', ''],
]);
/** A secret of this length cannot be guessed, even if it begins with such a word or has only digits. */
const WELL_KNOWN_MAX = 24;

/** Says why a secret can be guessed, as the end of a sentence. `hopeless`: any attacker can guess it. Null if safe. */
function weaknessOf(text: string): { readonly why: string; readonly hopeless: boolean } | null {
  if (text === '') return { why: 'is empty', hopeless: true };
  const word = text.length < WELL_KNOWN_MAX ? text.toLowerCase().replace(/[\d\W_]+$/, '') : text;
  if (WELL_KNOWN.has(word)) return { why: 'is well known', hopeless: true };
  if (text.length < LENGTH_LEAST) return { why: `has only ${text.length} characters`, hopeless: true };
  if (text.length < LENGTH_MIN) return { why: `has only ${text.length} characters`, hopeless: false };
  const different = new Set(text).size;
  return different < DIFFERENT_MIN ? { why: `has only ${different} different characters`, hopeless: false } : null;
}

export const SETTINGS_CHECKS: readonly Check<SettingsFacts>[] = [
  {
    id: 'settings.read',
    looksAt: 'the environment variables',
    wrongIf: 'a program would not start with them',
    judge: ({ problems }) =>
      problems.length === 0
        ? ok('usable')
        : wrong(`${problems.join('; ')}.`, 'Correct them. docs/configuration.md lists the valid values.'),
  },
  {
    id: 'settings.node',
    looksAt: 'the version of Node',
    wrongIf: 'it is too old',
    riskyIf: 'it is not tested',
    judge: ({ node }) => judgeVersion('node', node),
  },
  {
    id: 'settings.secrets',
    looksAt: 'every secret and password',
    wrongIf: `a secret is empty, well known, or has fewer than ${LENGTH_LEAST} characters`,
    riskyIf: `it has fewer than ${LENGTH_MIN} characters, or fewer than ${DIFFERENT_MIN} different ones`,
    judge: ({ secrets }) => {
      const weak = secrets.flatMap(({ name, text }) => {
        const found = weaknessOf(text);
        return found === null ? [] : [{ says: `the one in ${name} ${found.why}`, hopeless: found.hopeless }];
      });
      if (weak.length === 0) return ok(`${secrets.length}, all strong`);
      const says = `These secrets can be guessed: ${listed(weak.map((one) => one.says))}.`;
      const todo = 'Use 32 random characters: openssl rand -base64 32.';
      return weak.some(({ hopeless }) => hopeless) ? wrong(says, todo) : risky(says, todo);
    },
  },
  {
    id: 'settings.same-secret',
    looksAt: 'whether each secret is used only once',
    riskyIf: 'two settings share a secret',
    judge: ({ secrets }) => {
      const users = new Map<string, string[]>();
      for (const { name, text } of secrets) {
        if (text !== '') users.set(text, [...(users.get(text) ?? []), name]);
      }
      const shared = [...users.values()].filter((names) => new Set(names).size > 1);
      if (shared.length === 0) return ok('all different');
      const says = listed(shared.map((names) => [...new Set(names)].join(' and ')));
      return risky(`${says} share a secret.`, 'Set a different secret in each.');
    },
  },
  {
    id: 'settings.unsigned-messages',
    looksAt: '`MESSAGE_UNSIGNED`',
    riskyIf: 'it is `accept`',
    judge: ({ unsigned }) =>
      unsigned === 'refuse'
        ? ok('refused')
        : risky('The programs accept unsigned messages.', 'Remove MESSAGE_UNSIGNED once all programs sign.'),
  },
  {
    id: 'settings.listeners',
    looksAt: '`OPERATORS_HOST` and `METRICS_HOST`',
    riskyIf: 'one is public, or all addresses of the machine',
    judge: ({ listeners }) => {
      const open = listeners.filter(({ host }) => ['public', 'every'].includes(kindOfAddress(host)));
      if (open.length === 0) return ok('loopback or private addresses');
      const names = [...new Set(open.map(({ name, host }) => `${name} is ${host}`))].join(', and ');
      const token = open.every(({ guarded }) => guarded) ? '' : ', and set METRICS_TOKEN';
      return risky(
        `${names}: buyers must not reach these ports.`,
        `Set a private address, or close the ports with a firewall${token}.`,
      );
    },
  },
];

/** Reads a section. Null if its settings are not valid. */
export function sectionOf<S extends SectionName>(name: S, env: Environment): Section<S> | null {
  const read = readSection(name, env);
  return 'wrong' in read ? null : read.section;
}

/** Reads a section. `wrong` is a sentence that names its first invalid setting. */
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

function secretsIn(env: Environment, programs: readonly ProgramKind[]): Secret[] {
  const sections = new Set(programs.flatMap((program): readonly SectionName[] => PROGRAM_SECTIONS[program]));
  const keys = settingsOf([...sections]);
  const secrets = new Map(keys.filter(({ secret }) => secret).map((key) => [key.env, settingText(key, env)]));
  const needed = new Set(secrets.get('MYSQL_PASSWORD') ? [] : ['MYSQL_URL']);
  return [...secrets].flatMap(([name, value]) =>
    textsIn(name, value, needed.has(name)).map((text) => ({ name, text })),
  );
}

/** Returns the passwords and keys in a setting. @param isNeeded a URL without a password yields an empty password */
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
