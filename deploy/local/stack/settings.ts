import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { BrokerCredentials } from '../../../src/rocketmq/credentials.js';
import { DEFAULT_PORTS, listeningPorts, parsePorts, pickFreePorts, type StackPorts } from './ports.js';
import type { StackPaths } from './paths.js';
import { createOnce } from './processes.js';
import { explainFileError, StackError } from './stack-error.js';
import { DEFAULT_VERSIONS, type Versions } from './versions.js';

/** Which ports an instance gets at its first start: the default ones, free ones, or those given. */
export type PortChoice = 'default' | 'free' | StackPorts;

/**
 * The ports of an instance. They are chosen once and remembered, since other places store them (routes in the broker,
 * URLs in the settings of people); a later choice does not change them.
 */
export function loadPorts(instanceFile: string, choice: PortChoice): StackPorts {
  const remembered = readInstance(instanceFile)?.ports;
  if (remembered !== undefined) return remembered;
  if (choice === 'default') return DEFAULT_PORTS;
  return choice === 'free' ? pickFreePorts(listeningPorts()) : parsePorts(choice, 'The choice of ports');
}

/** The servers that the data of an instance is of; null before its first start. */
export function loadVersions({ instanceFile, data }: Pick<StackPaths, 'instanceFile' | 'data'>): Versions | null {
  const remembered = readInstance(instanceFile)?.servers;
  if (remembered !== undefined) return remembered;
  return existsSync(dirname(data('redis'))) ? DEFAULT_VERSIONS : null; // made when there was nothing to choose
}

/** @param servers missing: they are chosen at the first start */
export function rememberInstance(instanceFile: string, ports: StackPorts, servers?: Versions): void {
  mkdirSync(dirname(instanceFile), { recursive: true });
  const draft = `${instanceFile}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify({ ports, servers }, null, 2)}\n`);
  renameSync(draft, instanceFile);
}

function readInstance(instanceFile: string): { readonly ports: StackPorts; readonly servers?: Versions } | null {
  let text: string;
  try {
    text = readFileSync(instanceFile, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw explainFileError(error, dirname(instanceFile));
  }
  try {
    const { ports, servers } = JSON.parse(text) as { ports?: { mariadb?: unknown }; servers?: Versions };
    // the name of that port before there was a choice
    const named = ports?.mariadb === undefined ? ports : { mysql: ports.mariadb, ...ports };
    return { ports: parsePorts(named, instanceFile), ...(servers === undefined ? {} : { servers }) };
  } catch (cause) {
    if (cause instanceof StackError) throw cause;
    throw new StackError(`${instanceFile} is damaged; delete it and choose the ports again.`, { cause });
  }
}

/** Made once per instance, at its first start, and kept in a file that only its owner can read. */
export interface StackSecrets {
  /** Password of the MySQL user `seckill`; base64url, so it can stand in a URL as it is. */
  readonly mysqlPassword: string;
  /** Key for signing tokens with HS256; base64url of 48 random bytes. */
  readonly jwtSecret: string;
}

/** Reads the secrets of an instance, making them first where there are none. */
export function ensureSecrets(path: string): StackSecrets {
  const fresh: StackSecrets = {
    mysqlPassword: randomBytes(18).toString('base64url'),
    jwtSecret: randomBytes(48).toString('base64url'),
  };
  return parseSecrets(createOnce(path, `${JSON.stringify(fresh, null, 2)}\n`, 0o600), path);
}

/** @returns null when the instance was never started */
export function readSecrets(path: string): StackSecrets | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    if (code !== 'EACCES') throw error;
    throw new StackError(`${path} belongs to another user; work as that user, or in a checkout of your own.`, {
      cause: error,
    });
  }
  return parseSecrets(text, path);
}

function parseSecrets(text: string, path: string): StackSecrets {
  try {
    const { mysqlPassword, jwtSecret } = JSON.parse(text) as Partial<StackSecrets>;
    if (typeof mysqlPassword === 'string' && typeof jwtSecret === 'string') return { mysqlPassword, jwtSecret };
  } catch {
    // falls through to the sentence below
  }
  throw new StackError(`${path} is damaged; put it back from a copy, or delete the whole instance folder.`);
}

/** What points the product at an instance. Every value is free of blanks and quotes. */
export interface StackEnv {
  /** `mysql://user:password@host:port/database` */
  readonly MYSQL_URL: string;
  /** `redis://:password@host:port` */
  readonly REDIS_URL: string;
  /** `host:port` of the proxy, gRPC. */
  readonly ROCKETMQ_ENDPOINT: string;
  /** `host:port` of the name server, for admin work only. */
  readonly NAMESRV_ADDR: string;
  /** The user of the broker as whom the programs connect, the only one that it knows. */
  readonly ROCKETMQ_ACCESS_KEY: string;
  readonly ROCKETMQ_ACCESS_SECRET: string;
  readonly JWT_SECRET: string;
  /** One key each, `local`. */
  readonly MESSAGE_KEYS: string;
  readonly ADMISSION_SIGN_KEYS: string;
  readonly ADMISSION_SEAL_KEYS: string;
  /** What a message about a payment is signed with. */
  readonly PAYMENT_WEBHOOK_SECRET: string;
}

export const DATABASE = 'seckill';
export const DATABASE_USER = 'seckill';

export function stackEnv(ports: StackPorts, secrets: StackSecrets): StackEnv {
  const { accessKey, accessSecret } = brokerCredentials(secrets);
  return {
    MYSQL_URL: `mysql://${DATABASE_USER}:${secrets.mysqlPassword}@127.0.0.1:${ports.mysql}/${DATABASE}`,
    REDIS_URL: `redis://:${redisPassword(secrets)}@127.0.0.1:${ports.redis}`,
    ROCKETMQ_ENDPOINT: `127.0.0.1:${ports.grpc}`,
    NAMESRV_ADDR: `127.0.0.1:${ports.namesrv}`,
    ROCKETMQ_ACCESS_KEY: accessKey,
    ROCKETMQ_ACCESS_SECRET: accessSecret,
    JWT_SECRET: secrets.jwtSecret,
    MESSAGE_KEYS: `local:${derivedKey(secrets.jwtSecret, 'message')}`,
    ADMISSION_SIGN_KEYS: `local:${derivedKey(secrets.jwtSecret, 'sign')}`,
    ADMISSION_SEAL_KEYS: `local:${derivedKey(secrets.jwtSecret, 'seal')}`,
    PAYMENT_WEBHOOK_SECRET: derivedKey(secrets.jwtSecret, 'webhook'),
  };
}

/** Base64url, so it can stand in a URL and in a configuration file as it is. */
export const redisPassword = ({ jwtSecret }: Pick<StackSecrets, 'jwtSecret'>): string => derivedKey(jwtSecret, 'redis');

/** The only user of the broker. */
export const brokerCredentials = ({ jwtSecret }: Pick<StackSecrets, 'jwtSecret'>): BrokerCredentials => ({
  accessKey: 'seckill',
  accessSecret: derivedKey(jwtSecret, 'broker'),
});

/** Derived from the secret that every instance has, so that older instances need no new one. */
const derivedKey = (secret: string, purpose: string): string =>
  createHmac('sha256', secret).update(`seckill entry ${purpose}`).digest('base64url');

/** Lines for a shell: `eval "$(npm run -s stack -- env)"`, or a file for `--env-file`. */
export function envLines(env: StackEnv): string {
  return Object.entries(env)
    .map(([key, value]) => `export ${key}=${value as string}\n`)
    .join('');
}
