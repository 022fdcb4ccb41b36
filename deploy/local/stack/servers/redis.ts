import { mkdirSync } from 'node:fs';
import { probeRedis } from '../probes.js';
import { writeConf } from '../files.js';
import type { CertificateFiles } from '../certificates.js';
import { ensureSecrets, readSecrets, REDIS_USER, redisPassword } from '../settings.js';
import type { Instance, ServerSpec } from './server-spec.js';

export function redisSpec({ paths, ports, durability, certificates = null }: Instance): ServerSpec {
  return {
    name: 'redis',
    label: 'Redis',
    portNames: ['redis'],
    startTimeoutMs: 60_000,
    stopTimeoutMs: 15_000,
    prepare: async ({ artifacts }) => {
      const dataDir = paths.data('redis');
      mkdirSync(dataDir, { recursive: true });
      const appendfsync = durability === 'host' ? 'always' : 'everysec';
      const password = redisPassword(ensureSecrets(paths.secretsFile));
      const access = certificates === null ? plain(ports.redis, password) : secure(ports.redis, password, certificates);
      writeConf('redis.conf', paths.conf('redis.conf'), { access: access.join('\n'), dataDir, appendfsync });
      return { file: artifacts.redisServer, args: [paths.conf('redis.conf')] };
    },
    probe: async () => {
      const secrets = readSecrets(paths.secretsFile);
      if (secrets === null) return 'it was never started';
      return probeRedis(ports.redis, redisPassword(secrets), certificates && { user: REDIS_USER, certificates });
    },
  };
}

/** Includes the login for a master, because replicas are started by hand and this server may become a replica. */
const plain = (port: number, password: string): string[] => [
  `port ${port}`,
  `requirepass ${password}`,
  `masterauth ${password}`,
];

/** The rights that a program needs, as in docs/security.md. */
export const REDIS_RIGHTS = '~sk:* resetchannels &sk:* +@all -@admin -@dangerous +info +cluster|slots +cluster|info';

const secure = (port: number, password: string, { ca, server, serverKey }: CertificateFiles): string[] => [
  'port 0',
  `tls-port ${port}`,
  `tls-ca-cert-file "${ca}"`,
  `tls-cert-file "${server}"`,
  `tls-key-file "${serverKey}"`,
  'tls-auth-clients yes',
  'user default off',
  `user ${REDIS_USER} on >${password} ${REDIS_RIGHTS}`,
];
