import { loadConfig } from '../../src/core/config/load.js';
import type { Section } from '../../src/core/config/schema.js';

// How to connect to the servers that an environment names, as a program does: by TLS, and with passwords from files, too.

export const mysqlIn = (env: object): Section<'mysql'> => loadConfig(['mysql'], { ...env }).mysql;
export const redisIn = (env: object): Section<'redis'> => loadConfig(['redis'], { ...env }).redis;
