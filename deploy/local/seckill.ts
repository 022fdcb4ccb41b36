import { existsSync } from 'node:fs';
import { report } from '../../src/cli/run-command-line.js';
import { fileVariable } from '../../src/core/config/key.js';
import { DEFAULT_DIR, stackPaths } from './stack/paths.js';
import { openStack } from './stack/stack.js';

/** What points a program at its servers. */
const SERVER_KEYS = ['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT', 'NAMESRV_ADDR', 'JWT_SECRET'] as const;

// Where the environment names no server at all, the local stack is meant, if it was ever started; if not, the
// configuration says what is missing. Whoever names one of them must name the others that a command needs, and production
// is never the stack of a developer.
const wasStarted = existsSync(stackPaths(DEFAULT_DIR).secretsFile);
const isProduction = process.env.NODE_ENV === 'production';
if (wasStarted && !isProduction && !SERVER_KEYS.some((key) => process.env[key] || process.env[fileVariable(key)])) {
  try {
    for (const [key, value] of Object.entries(openStack().env())) process.env[key] ||= value as string;
  } catch (error) {
    process.exit(report(error)); // damaged files, or those of another user
  }
}
await import('../../src/cli/main.js');
