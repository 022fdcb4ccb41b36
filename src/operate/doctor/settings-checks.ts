import { listed, ok, risky, wrong, type Check } from '../../core/doctor/check.js';
import { kindOfAddress } from '../../core/doctor/reach.js';
import { judgeVersion } from '../../core/doctor/versions.js';

/** Settings of this shell, and the program that reads them. */
export interface SettingsFacts {
  /** Mistakes in the settings, a sentence each. */
  readonly problems: readonly string[];
  /**
   * Secrets by the name of their variable. Each key of a list, and the password of a URL, is an entry of its own. Never
   * printed.
   */
  readonly secrets: readonly Secret[];
  /** MESSAGE_UNSIGNED. */
  readonly unsigned: 'refuse' | 'accept';
  /** Addresses where our own programs listen for people and monitoring. */
  readonly listeners: readonly Listener[];
  /** `20.19.0`. */
  readonly node: string;
}

export interface Secret {
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
/** Length below which a secret is guessed within minutes, wherever it can be tried. */
const LENGTH_LEAST = 8;
/**
 * Minimum number of different characters. 16 random characters have fewer in 1 of 10 million cases, but a repeated word
 * often does.
 */
const DIFFERENT_MIN = 8;
/** Words that attackers try first, followed by any digits and signs. Some are in manuals. */
const WELL_KNOWN = new Set([
  ...['password', 'passwd', 'secret', 'changeme', 'change', 'example', 'default', 'guest', 'test', 'letmein', 'qwerty'],
  ...['admin', 'root', 'user', 'redis', 'mysql', 'mariadb', 'rocketmq', 'seckill', ''],
]);
/** Length from which a secret is not guessed, even if it begins with such a word or is all digits. */
const WELL_KNOWN_MAX = 24;

/**
 * Says why a secret can be guessed, as the end of a sentence. Null: it cannot. `hopeless`: any attacker can guess it.
 */
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
    looksAt: 'the environment variables of this shell',
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
    looksAt: 'the strength of every secret and password',
    wrongIf: `a secret is empty, well known, or shorter than ${LENGTH_LEAST} characters`,
    riskyIf: `a secret has fewer than ${LENGTH_MIN} characters, or fewer than ${DIFFERENT_MIN} different ones`,
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
    riskyIf: 'two settings share a secret, so a leak of one reveals both',
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
    riskyIf: 'it is `accept`, which is only for an upgrade',
    judge: ({ unsigned }) =>
      unsigned === 'refuse'
        ? ok('refused')
        : risky('The programs accept unsigned messages.', 'Remove MESSAGE_UNSIGNED once all programs sign.'),
  },
  {
    id: 'settings.listeners',
    looksAt: '`OPERATORS_HOST` and `METRICS_HOST`',
    riskyIf: 'one of them is a public address, or means all addresses of the machine',
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
