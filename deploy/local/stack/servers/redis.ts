import { mkdirSync } from 'node:fs';
import { probeRedis } from '../probes.js';
import { writeConf } from '../files.js';
import { ensureSecrets, readSecrets, redisPassword } from '../settings.js';
import type { Instance, ServerSpec } from './server-spec.js';

export function redisSpec({ paths, ports, durability }: Instance): ServerSpec {
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
      writeConf('redis.conf', paths.conf('redis.conf'), {
        redisPort: ports.redis,
        redisPassword: redisPassword(ensureSecrets(paths.secretsFile)),
        dataDir,
        appendfsync,
      });
      return { file: artifacts.redisServer, args: [paths.conf('redis.conf')] };
    },
    probe: async () => {
      const secrets = readSecrets(paths.secretsFile);
      return secrets === null ? 'it was never started' : probeRedis(ports.redis, redisPassword(secrets));
    },
  };
}
