import { loadConfig } from '../../src/core/config/load.js';
import type { Section } from '../../src/core/config/schema.js';

// Connection settings of the servers in an environment, as a program reads them, including TLS and passwords from
// files.

export const mysqlIn = (env: object): Section<'mysql'> => loadConfig(['mysql'], { ...env }).mysql;
export const redisIn = (env: object): Section<'redis'> => loadConfig(['redis'], { ...env }).redis;
