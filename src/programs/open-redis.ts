import type { Section } from '../core/config/schema.js';
import { OperationalError } from '../core/errors.js';
import type { Log } from '../core/ports/log.js';
import { connectRedis, type RedisConnection } from '../redis/connection.js';
import { findRedisMisconfiguration, probeRedis } from '../redis/probe.js';

/**
 * Connects and refuses a Redis that stock must not be put into: one that evicts, keeps no log, or lives at another time.
 * @throws OperationalError redis, with a sentence per problem
 */
export async function openRedis(options: Section<'redis'>, log: Log): Promise<RedisConnection> {
  const connection = await connectRedis(options, log);
  try {
    const problems = await findRedisMisconfiguration(connection);
    const probe = await probeRedis(connection);
    if (!probe.ok) problems.push(probe.detail);
    if (problems.length === 0) return connection;
    throw new OperationalError('redis', `this Redis cannot hold stock: ${problems.join(' ')}`, { retryable: false });
  } catch (error) {
    await connection.close();
    throw error;
  }
}
