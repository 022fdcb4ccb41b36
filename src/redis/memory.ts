import type { Redis } from 'ioredis';
import type { ServerMemory } from '../core/store-memory.js';
import { asOperationalError, type RedisConnection } from './connection.js';

/**
 * The memory of every server that holds keys.
 * @throws OperationalError redis
 */
export function readRedisMemory({ masters }: Pick<RedisConnection, 'masters'>): Promise<ServerMemory[]> {
  return asOperationalError('read the memory of the servers', () => Promise.all(masters().map(memoryOf)));
}

async function memoryOf(server: Redis): Promise<ServerMemory> {
  const info = await server.info('memory');
  const read = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const { host = '', port = 0 } = server.options;
  const maxBytes = read('maxmemory') || read('total_system_memory');
  return { server: `${host}:${port}`, usedBytes: read('used_memory'), maxBytes };
}
