import type { Redis } from 'ioredis';
import type { ServerMemory } from '../core/store-memory.js';
import type { OperationalError } from '../core/errors.js';
import { eachOrFault, nameOf, type RedisConnection } from './connection.js';

/** Reads all servers that hold keys. For a server that does not answer, returns its fault. Never rejects. */
export function readRedisMemory({ masters }: RedisConnection): Promise<(ServerMemory | OperationalError)[]> {
  return eachOrFault('read the memory of the servers', masters(), memoryOf);
}

async function memoryOf(server: Redis): Promise<ServerMemory> {
  const info = await server.info('memory');
  const read = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const maxBytes = read('maxmemory') || read('total_system_memory');
  return { server: nameOf(server), usedBytes: read('used_memory'), maxBytes };
}
