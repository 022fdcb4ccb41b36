import { fileVariable } from '../../src/core/config/key.js';
import { DEFAULT_DIR, stackPaths } from './stack/paths.js';
import { readStackEnv } from './stack/settings.js';

/** What points a program at its servers. */
const SERVER_KEYS = ['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT', 'NAMESRV_ADDR', 'JWT_SECRET'] as const;

// Where the environment names no server at all, the local stack is meant, if it was ever started; if not, the
// configuration says what is missing. Whoever names one of them must name the others that a command needs, and production
// is never the stack of a developer.
const isProduction = process.env.NODE_ENV === 'production';
if (!isProduction && !SERVER_KEYS.some((key) => process.env[key] || process.env[fileVariable(key)])) {
  try {
    const env = readStackEnv(stackPaths(DEFAULT_DIR)) ?? {};
    for (const [key, value] of Object.entries(env)) process.env[key] ||= value as string;
  } catch (error) {
    const { report } = await import('../../src/cli/run-command-line.js');
    process.exit(report(error)); // damaged files, or those of another user
  }
}
