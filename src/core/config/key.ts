import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isLoopback, readNetwork } from '../ip-address.js';
import { readKeyList } from '../hmac.js';
import { liveText, type Live } from '../live.js';
import { readIssuers } from './issuers.js';

export interface Key<T> {
  readonly env: string;
  readonly doc: string;
  /** Unit of a number, such as `ms` or `purchases`. Empty for text. */
  readonly unit: string;
  /** Default. A key without a default must be set unless it is `optional`. */
  readonly fallback: T | undefined;
  /** If the key is not set, its value is empty and the feature that needs it is off. A secret has no other default. */
  readonly optional: boolean;
  /** If true, no message shows the value. */
  readonly secret: boolean;
  /** `<env>_FILE` may name a file that holds the value. */
  readonly fromFile: boolean;
  /** If true, the value is a `Live`, even if the key is not set. */
  readonly live?: boolean;
  /**
   * @param again reads the file again; absent if the value comes from the environment
   * @throws Error with the end of a sentence that begins with the name of the variable
   */
  readonly parse: (text: string, again?: () => string) => T;
  /** Describes the accepted values, for the docs. */
  readonly range: string;
  /** Lists the accepted words, if the key accepts only some. */
  readonly words?: readonly string[];
  /** True if this is not a setting: the value is always `fallback`, unless a test replaces it with `TEST_OVERRIDES`. */
  readonly isFixed?: boolean;
}

/** A key whose type contains the name of its variable and whether a file may hold its value. */
type Named<T, O extends { readonly env: string }, F = IsSecret<O>> = Key<T> & {
  readonly env: O['env'];
  readonly fromFile: F;
  readonly isFixed?: false;
};
type IsSecret<O> = O extends { readonly secret: true } ? true : false;

/** One section of the configuration. */
export type Keys = Readonly<Record<string, Key<string> | Key<number> | Key<Live>>>;

/** Returns the variable that may name a file that contains the value of `env`. */
export const fileVariable = (env: string): string => `${env}_FILE`;

interface Common<T> {
  readonly env: string;
  readonly doc: string;
  readonly fallback?: T;
  readonly secret?: boolean | undefined;
  readonly optional?: boolean;
}

export function integer<const O extends Common<number> & { unit: string; min: number; max: number }>(
  options: O,
): Named<number, O> {
  const { unit, min, max } = options;
  const range = `${min} to ${max}`;
  return {
    ...common(options),
    unit,
    range,
    parse: (text) => {
      const value = Number(text);
      if (text.trim() === '' || !Number.isInteger(value) || value < min || value > max) {
        throw new Error(`must be a whole number from ${range}${unit ? ` (${unit})` : ''}, but is ${quote(text)}`);
      }
      return value;
    },
  };
}

/** No operator has a reason to change this. Tests set `TEST_OVERRIDES`: they cannot wait a minute for each retry. */
export const fixed = (env: string, value: number): Key<number> & { readonly isFixed: true } => ({
  ...integer({
    env,
    doc: 'Fixed.',
    unit: /_(MS|DELAY)$/.test(env) ? 'ms' : '',
    fallback: value,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
  }),
  isFixed: true,
});

/** Describes a fraction, from 0 to 1. */
export function share<const O extends Common<number>>(options: O): Named<number, O> {
  return {
    ...common(options),
    unit: '',
    range: '0 to 1',
    parse: (text) => {
      const value = Number(text);
      if (!/^[0-9.]+$/.test(text) || !(value >= 0 && value <= 1)) {
        throw new Error(`must be a number from 0 to 1, but is ${quote(text)}`);
      }
      return value;
    },
  };
}

export function word<const W extends string, const O extends Common<W> & { words: readonly W[] }>(
  options: O & { words: readonly W[] },
): Named<W, O> {
  const { words } = options;
  return {
    ...common(options),
    unit: '',
    range: words.join(', '),
    words,
    parse: (text) => {
      const found = words.find((candidate) => candidate === text);
      if (found === undefined) throw new Error(`must be one of ${words.join(', ')}, but is ${quote(text)}`);
      return found;
    },
  };
}

/** An address with several hosts, which no URL parser can read. */
export interface UrlForm {
  readonly words: string;
  readonly pattern: RegExp;
}

export function url<const O extends Common<string> & { protocols: readonly string[]; forms?: readonly UrlForm[] }>(
  options: O,
): Named<string, O> {
  const { protocols, forms = [] } = options;
  const range = [...protocols.map((protocol) => `${protocol}//…`), ...forms.map(({ words }) => words)].join(' or ');
  return {
    ...common(options),
    unit: '',
    range,
    parse: (value) => {
      const isUrl = URL.canParse(value) && protocols.includes(new URL(value).protocol);
      if (!isUrl && !forms.some(({ pattern }) => pattern.test(value))) {
        throw new Error(`must be a URL ${range}, but is not`); // may contain a password, so never shown
      }
      if (!canDecode(value)) throw new Error('must write a literal % as %25');
      return value;
    },
  };
}

/** Returns whether login and path can be decoded. They are decoded later, where an error could not name the setting. */
function canDecode(value: string): boolean {
  try {
    decodeURIComponent(value);
    return true;
  } catch {
    return false;
  }
}

export function text<const O extends Common<string> & { minLength: number; range: string }>(
  options: O,
): Named<string, O> {
  return {
    ...common(options),
    unit: '',
    range: options.range,
    parse: (value) => {
      if (value.length < options.minLength) {
        throw new Error(`must have at least ${options.minLength} characters, but has ${value.length}`);
      }
      return value;
    },
  };
}

/** Describes a password whose file is read again, so it can change without a restart. */
export function password<const O extends Omit<Common<string>, 'secret' | 'fallback' | 'optional'>>(
  options: O,
): Named<Live, O, true> {
  return live({ ...options, secret: true }, 'text', () => undefined);
}

/** Describes certificates or a private key in PEM. Their file is read again. */
export function pem<const O extends Omit<Common<string>, 'fallback' | 'optional'> & { holds: keyof typeof CHECK_PEM }>(
  options: O,
): Named<Live, O, true> {
  const { holds } = options;
  return live(options, `${holds === 'key' ? 'a private key' : 'certificates'} in PEM`, CHECK_PEM[holds]);
}

/** @param check throws Error with the end of a sentence that begins with the name of the variable */
function live<const O extends Omit<Common<string>, 'fallback' | 'optional'>>(
  options: O,
  range: string,
  check: (text: string) => void,
): Named<Live, O, true> {
  const { doc, secret } = options;
  return {
    ...common<Live, Common<Live>>({ env: options.env, doc, secret, optional: true }),
    env: options.env,
    live: true,
    fromFile: true,
    unit: '',
    range,
    parse: (text, again) => {
      check(text);
      if (again === undefined) return () => text;
      return liveText(text, (last) => {
        const now = again();
        if (now !== last) check(now);
        return now;
      });
    },
  };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

const CHECK_PEM = {
  /** Checks certificates of authorities. Accepts expired certificates if at least one is valid. */
  certificates: (text: string): void => checkCertificates(text, (ends) => Math.max(...ends)),
  /** Checks our own certificate, the first in the file. The certificates of its issuers may follow it. */
  chain: (text: string): void => checkCertificates(text, ([own = Infinity]) => own),
  key(text: string): void {
    try {
      createPrivateKey(text);
    } catch (cause) {
      throw new Error('must contain a private key in PEM without a passphrase, but does not', { cause });
    }
  },
};

/** @param endOf receives the expiries in file order, and returns the expiry that counts, Unix ms */
function checkCertificates(text: string, endOf: (ends: readonly number[]) => number): void {
  const found = text.match(CERTIFICATE) ?? [];
  if (found.length === 0) throw new Error('must contain certificates in PEM, but contains none');
  const ends = found.map((one) => {
    try {
      return Date.parse(new X509Certificate(one).validTo);
    } catch (cause) {
      throw new Error('must contain certificates in PEM, but one of them cannot be read', { cause });
    }
  });
  const end = endOf(ends);
  if (end < Date.now()) {
    throw new Error(`must contain a certificate that is valid, but it expired on ${new Date(end).toISOString()}`);
  }
}

/** Describes `host:port` addresses without a scheme, separated by commas. The parsed value has no blanks. */
export function endpoints<const O extends Common<string>>(options: O): Named<string, O> {
  return {
    ...common(options),
    unit: '',
    range: 'host:port, separated by commas',
    parse: (value) => {
      const parts = value.split(',').map((part) => part.trim());
      for (const [index, part] of parts.entries()) {
        const [, port] = /^[A-Za-z0-9.-]+:(\d{1,5})$/.exec(part) ?? [];
        if (!port || Number(port) < 1 || Number(port) > 65535)
          throw new Error(`must be host:port without scheme, separated by commas, but ${quote(part)} is not`);
        if (parts.indexOf(part) < index)
          throw new Error(`must name each host:port once, but names ${quote(part)} twice`);
      }
      return parts.join(',');
    },
  };
}

/** Describes addresses and networks, separated by commas. The parsed value has no blanks. */
export function networks<const O extends Common<string>>(options: O): Named<string, O> {
  return {
    ...common(options),
    unit: '',
    range: 'networks such as 10.0.0.0/8, separated by commas',
    parse: (value) => {
      const parts = value.split(',').map((part) => part.trim());
      const wrong = parts.find((part) => readNetwork(part) === null);
      if (wrong !== undefined) {
        throw new Error(
          `must be networks such as 10.0.0.0/8, separated by commas, but ${quote(wrong)} is not a network`,
        );
      }
      return parts.join(',');
    },
  };
}

/** Describes origins of pages, separated by commas, parsed without blanks. They need TLS unless on this machine. */
export function origins<const O extends Common<string>>(options: O): Named<string, O> {
  return {
    ...common(options),
    unit: '',
    range: 'origins such as https://shop.example, separated by commas',
    parse: (value) => {
      const parts = value.split(',').map((part) => part.trim());
      const wrong = parts.find((part) => !isOrigin(part));
      if (wrong !== undefined) {
        throw new Error(
          `must be origins such as https://shop.example, separated by commas, but ${quote(wrong)} is not an origin`,
        );
      }
      return parts.join(',');
    },
  };
}

/** Accepts an origin as a browser writes it: no path, no trailing slash, no default port, lower case. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { origin, protocol, hostname } = new URL(text);
  if (origin !== text || hostname.includes('*')) return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** Describes secrets, each after the id of its key: `id:secret,id:secret`. No error shows a secret. */
export function keyList<const O extends Omit<Common<string>, 'secret' | 'fallback'>>(
  options: O,
): Named<string, O, true> {
  return {
    ...common({ ...options, secret: true }),
    unit: '',
    range: 'id:secret,id:secret; each secret 32 bytes or more',
    parse: (value) => {
      try {
        readKeyList(value);
      } catch (error) {
        throw new Error(`must be id:secret,id:secret, but ${(error as Error).message}`, { cause: error });
      }
      return value;
    },
  };
}

/** Describes identity providers as a JSON list. */
export function issuerList<const O extends Omit<Common<string>, 'fallback'>>(options: O): Named<string, O> {
  return {
    ...common(options),
    unit: '',
    range: 'JSON list of issuers',
    parse: (value) => {
      try {
        readIssuers(value);
      } catch (error) {
        throw new Error(`must be a JSON list of issuers: ${(error as Error).message}`, { cause: error });
      }
      return value;
    },
  };
}

const common = <T, const O extends Common<T>>(options: O) => ({
  env: options.env as O['env'],
  doc: options.doc,
  fallback: options.fallback as T | undefined,
  optional: options.optional ?? false,
  secret: options.secret ?? false,
  fromFile: (options.secret ?? false) as IsSecret<O>,
});

const quote = (value: string): string => JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
