import { mkdirSync } from 'node:fs';
import { probeRedis } from '../probes.js';
import { writeConf } from '../files.js';
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
      writeConf('redis.conf', paths.conf('redis.conf'), { redisPort: ports.redis, dataDir, appendfsync });
      return { file: artifacts.redisServer, args: [paths.conf('redis.conf')] };
    },
    probe: () => probeRedis(ports.redis),
  };
}
