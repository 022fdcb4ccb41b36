import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import { certificateFiles, ensureCertificates, type CertificateFiles } from '../../deploy/local/stack/certificates.js';
import { REDIS_RIGHTS } from '../../deploy/local/stack/servers/redis.js';
import type { RedisOptions } from '../../src/redis/client.js';
import type { SecureParts } from './private-redis.js';

/** Settings of private servers that only accept TLS, with a user for programs and a user for operators. */
export interface SecureRedis {
  readonly certificates: CertificateFiles;
  /** Password of the programs' user. */
  readonly password: string;
  /** The operators' user, with all rights. */
  readonly operator: SecureParts;
  /** Arguments of each server. */
  readonly args: readonly string[];
  /**
   * Arguments of a sentinel. It refuses to start if a user has the right to a command that only servers know, and vice
   * versa.
   */
  readonly sentinelArgs: readonly string[];
  /** Connection options of a program, except its address. */
  readonly options: Omit<RedisOptions, 'url' | 'replyTimeoutMs' | 'connectTimeoutMs'>;
  /** TLS options for a connection of the operator. */
  readonly tls: ConnectionOptions;
  remove(): void;
}

/** The rights that a program needs at sentinels. */
const SENTINEL_RIGHTS = 'allchannels -@all +@connection +@pubsub +sentinel|get-master-addr-by-name +sentinel|sentinels';

const PASSWORD = 'of-the-programs';
const WATCHER = { user: 'watcher', password: 'of-who-asks-sentinels' };
const OPERATOR = { user: 'ops', password: 'of-the-operators' };

/** @param rights of the programs' user; defaults to the documented rights */
export async function prepareSecureRedis(rights: string = REDIS_RIGHTS): Promise<SecureRedis> {
  const dir = mkdtempSync(join(tmpdir(), 'seckill-secure-redis-'));
  const certificates = certificateFiles(dir);
  await ensureCertificates(certificates);
  const { ca, server, serverKey, client, clientKey } = certificates;
  const read = (file: string) => () => readFileSync(file, 'utf8');
  const shared = [
    ...['--tls-ca-cert-file', ca, '--tls-cert-file', server, '--tls-key-file', serverKey],
    ...['--tls-auth-clients', 'yes', '--tls-replication', 'yes'],
    ...['--user', 'default', 'off'],
    ...['--user', OPERATOR.user, 'on', `>${OPERATOR.password}`, '~*', 'allchannels', '+@all'],
  ];
  return {
    certificates,
    password: PASSWORD,
    operator: { ...OPERATOR, certificates },
    args: [
      ...shared,
      ...['--tls-cluster', 'yes', '--masteruser', OPERATOR.user, '--masterauth', OPERATOR.password],
      ...['--user', 'seckill', 'on', `>${PASSWORD}`, ...rights.split(' ')],
    ],
    sentinelArgs: [...shared, ...['--user', WATCHER.user, 'on', `>${WATCHER.password}`, ...SENTINEL_RIGHTS.split(' ')]],
    options: {
      tlsCa: read(ca),
      tlsCert: read(client),
      tlsKey: read(clientKey),
      password: () => PASSWORD,
      sentinelUser: WATCHER.user,
      sentinelPassword: () => WATCHER.password,
    },
    tls: { ca: readFileSync(ca), cert: readFileSync(client), key: readFileSync(clientKey) },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
