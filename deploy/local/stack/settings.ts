import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadConfig } from '../../../src/core/config/load.js';
import { type BrokerAccess, brokerAccessOf, type BrokerCredentials } from '../../../src/rocketmq/credentials.js';
import { type CertificateFiles, certificateFiles, writePrivate } from './certificates.js';
import { DEFAULT_PORTS, listeningPorts, parsePorts, pickFreePorts, type StackPorts } from './ports.js';
import type { StackPaths } from './paths.js';
import { createOnce } from './processes.js';
import type { BrokerTiming } from './servers/server-spec.js';
import { explainFileError, StackError } from './stack-error.js';
import { DEFAULT_VERSIONS, ownVersions, type Versions } from './versions.js';

/** Ports of an instance at its first start: the default ports, free ports, or the given ports. */
export type PortChoice = 'default' | 'free' | StackPorts;

/**
 * Loads the ports of an instance. They are chosen once and remembered, since other places store them (routes in the
 * broker, URLs in users' settings). A later choice does not change them.
 */
export function loadPorts(instanceFile: string, choice: PortChoice): StackPorts {
  const remembered = readInstance(instanceFile)?.ports;
  if (remembered !== undefined) return remembered;
  if (choice === 'default') return DEFAULT_PORTS;
  return choice === 'free' ? pickFreePorts(listeningPorts()) : parsePorts(choice, 'The choice of ports');
}

/**
 * Returns the servers that wrote the data of an instance, or null before its first start.
 * @param env used for a folder from before this choice existed: custom servers may have made it, and only the
 * environment names them
 */
export function loadVersions(
  { instanceFile, data }: Pick<StackPaths, 'instanceFile' | 'data'>,
  env: NodeJS.ProcessEnv = {},
): Versions | null {
  const remembered = readInstance(instanceFile)?.servers;
  if (remembered !== undefined) return remembered;
  return existsSync(dirname(data('redis'))) ? { ...DEFAULT_VERSIONS, ...ownVersions(env) } : null;
}

/** Whether the servers of an instance were last started with TLS and access control everywhere. */
export const wasSecure = (instanceFile: string): boolean => readInstance(instanceFile)?.secure === true;

/** Returns the last broker timing of an instance. */
export const timingOf = (instanceFile: string): BrokerTiming => readInstance(instanceFile)?.timing ?? 'production';

/** The stored properties of an instance after its first start. */
interface RememberedInstance {
  readonly ports: StackPorts;
  /** Missing until they are chosen at the first start. */
  readonly servers?: Versions;
  readonly secure?: boolean;
  readonly timing?: BrokerTiming;
}

export function rememberInstance(instanceFile: string, instance: RememberedInstance): void {
  mkdirSync(dirname(instanceFile), { recursive: true });
  const draft = `${instanceFile}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(instance, null, 2)}\n`);
  renameSync(draft, instanceFile);
}

function readInstance(instanceFile: string): RememberedInstance | null {
  let text: string;
  try {
    text = readFileSync(instanceFile, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw explainFileError(error, dirname(instanceFile));
  }
  try {
    const { ports, ...others } = JSON.parse(text) as Omit<RememberedInstance, 'ports'> & {
      ports?: { mariadb?: unknown };
    };
    // older files call the MySQL port `mariadb`, from before a stack could run either
    const named = ports?.mariadb === undefined ? ports : { mysql: ports.mariadb, ...ports };
    return { ...others, ports: parsePorts(named, instanceFile) };
  } catch (cause) {
    if (cause instanceof StackError) throw cause;
    throw new StackError(`${instanceFile} is damaged; delete it and choose the ports again.`, { cause });
  }
}

/** The secrets of an instance, created at its first start in a file that only its owner can read. */
export interface StackSecrets {
  /** Password of the MySQL user `seckill`; base64url, so a URL can contain it unescaped. */
  readonly mysqlPassword: string;
  /** Key for signing tokens with HS256; base64url of 48 random bytes. */
  readonly jwtSecret: string;
}

/** Reads the secrets of an instance and creates them if they are missing. */
export function ensureSecrets(path: string): StackSecrets {
  const fresh: StackSecrets = {
    mysqlPassword: randomBytes(18).toString('base64url'),
    jwtSecret: randomBytes(48).toString('base64url'),
  };
  return parseSecrets(createOnce(path, `${JSON.stringify(fresh, null, 2)}\n`, 0o600), path);
}

/** @returns null if the instance was never started */
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

/** The settings that connect the product to an instance. No value contains spaces or quotes. */
export interface StackEnv extends Partial<SecureEnv> {
  /** `mysql://user:password@host:port/database`, without the password if it is in a file. */
  readonly MYSQL_URL: string;
  /** `redis://:password@host:port`; with TLS `rediss://user@host:port`, and the password is in a file. */
  readonly REDIS_URL: string;
  /** `host:port` of the proxy, gRPC. */
  readonly ROCKETMQ_ENDPOINT: string;
  /** `host:port` of the name server, only for administration. */
  readonly NAMESRV_ADDR: string;
  /** The only broker user. The programs connect as this user. */
  readonly ROCKETMQ_ACCESS_KEY: string;
  readonly ROCKETMQ_ACCESS_SECRET: string;
  readonly JWT_SECRET: string;
  /** This and the next two settings have one key, `local`. */
  readonly MESSAGE_KEYS: string;
  readonly ADMISSION_SIGN_KEYS: string;
  readonly ADMISSION_SEAL_KEYS: string;
  /** Signs messages about payments. */
  readonly PAYMENT_WEBHOOK_SECRET: string;
}

/** Certificates and passwords are files, as containers mount them. */
type SecureEnv = Readonly<Record<(typeof SECURE_FILES)[number], string>> & {
  readonly MYSQL_TLS: 'on';
  readonly ROCKETMQ_TLS: 'on';
};
const SECURE_FILES = [
  ...(['MYSQL_PASSWORD_FILE', 'MYSQL_TLS_CA_FILE', 'MYSQL_TLS_CERT_FILE', 'MYSQL_TLS_KEY_FILE'] as const),
  ...(['REDIS_PASSWORD_FILE', 'REDIS_TLS_CA_FILE', 'REDIS_TLS_CERT_FILE', 'REDIS_TLS_KEY_FILE'] as const),
  ...(['ROCKETMQ_TLS_CA_FILE', 'ROCKETMQ_TLS_CERT_FILE', 'ROCKETMQ_TLS_KEY_FILE'] as const),
] as const;

export const DATABASE = 'seckill';
export const DATABASE_USER = 'seckill';

/** @param certificates of servers that only accept TLS, or null for plain text */
export function stackEnv(
  ports: StackPorts,
  secrets: StackSecrets,
  certificates: CertificateFiles | null = null,
): StackEnv {
  const { accessKey, accessSecret } = brokerCredentials(secrets);
  const isPlain = certificates === null;
  const mysqlLogin = isPlain ? `${DATABASE_USER}:${secrets.mysqlPassword}` : DATABASE_USER;
  const redisLogin = isPlain ? `redis://:${redisPassword(secrets)}` : `rediss://${REDIS_USER}`;
  return {
    MYSQL_URL: `mysql://${mysqlLogin}@127.0.0.1:${ports.mysql}/${DATABASE}`,
    REDIS_URL: `${redisLogin}@127.0.0.1:${ports.redis}`,
    ...(isPlain ? {} : secureEnv(certificates)),
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

/**
 * Returns the same settings for the instance of a folder, or null before its first start. @throws StackError when its
 * files are damaged
 */
export function readStackEnv({ dir, instanceFile, secretsFile }: StackPaths): StackEnv | null {
  const secrets = readSecrets(secretsFile);
  if (secrets === null) return null;
  return stackEnv(loadPorts(instanceFile, 'default'), secrets, wasSecure(instanceFile) ? certificateFiles(dir) : null);
}

/** User of a Redis with access control. A plain Redis has the default user only. */
export const REDIS_USER = 'seckill';

const passwordFiles = ({ ca }: CertificateFiles) => ({
  mysql: join(dirname(ca), 'mysql-password'),
  redis: join(dirname(ca), 'redis-password'),
});

/** Writes the passwords of MySQL and Redis to the files that `stackEnv` names. */
export function writePasswords(certificates: CertificateFiles, secrets: StackSecrets): void {
  const { mysql, redis } = passwordFiles(certificates);
  writePrivate(mysql, `${secrets.mysqlPassword}\n`);
  writePrivate(redis, `${redisPassword(secrets)}\n`);
}

function secureEnv(certificates: CertificateFiles): SecureEnv {
  const { mysql, redis } = passwordFiles(certificates);
  const { ca, client, clientKey } = certificates;
  return {
    MYSQL_PASSWORD_FILE: mysql,
    MYSQL_TLS: 'on',
    MYSQL_TLS_CA_FILE: ca,
    MYSQL_TLS_CERT_FILE: client,
    MYSQL_TLS_KEY_FILE: clientKey,
    REDIS_PASSWORD_FILE: redis,
    REDIS_TLS_CA_FILE: ca,
    REDIS_TLS_CERT_FILE: client,
    REDIS_TLS_KEY_FILE: clientKey,
    ROCKETMQ_TLS: 'on',
    ROCKETMQ_TLS_CA_FILE: ca,
    ROCKETMQ_TLS_CERT_FILE: client,
    ROCKETMQ_TLS_KEY_FILE: clientKey,
  };
}

/** Returns the user and the TLS settings of an environment for RocketMQ. */
export const brokerAccessIn = (env: object): BrokerAccess =>
  brokerAccessOf(loadConfig(['brokerAccess'], { ...env }).brokerAccess);

/** Returns the Redis password in base64url, so a URL and a configuration file can contain it unescaped. */
export const redisPassword = ({ jwtSecret }: Pick<StackSecrets, 'jwtSecret'>): string => derivedKey(jwtSecret, 'redis');

/** Returns the only user of the broker. */
export const brokerCredentials = ({ jwtSecret }: Pick<StackSecrets, 'jwtSecret'>): BrokerCredentials => ({
  accessKey: 'seckill',
  accessSecret: derivedKey(jwtSecret, 'broker'),
});

/** Derives a key from the secret that every instance has, so that older instances need no new secret. */
const derivedKey = (secret: string, purpose: string): string =>
  createHmac('sha256', secret).update(`seckill entry ${purpose}`).digest('base64url');

/** Formats lines for a shell, `eval "$(npm run -s stack -- env)"`, or for a file for `--env-file`. */
export function envLines(env: StackEnv): string {
  return Object.entries(env)
    .map(([key, value]) => `export ${key}=${value as string}\n`)
    .join('');
}
