import { fileVariable } from '../../src/core/config/key.js';
import { DEFAULT_DIR, stackPaths } from './stack/paths.js';
import { readStackEnv } from './stack/settings.js';

/** Settings that connect a program to its servers. */
const SERVER_KEYS = ['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT', 'NAMESRV_ADDR', 'JWT_SECRET'] as const;

// Uses the local stack if the environment names no server. An environment that names one server must name all, and
// production never uses a developer's stack.
const isProduction = process.env.NODE_ENV === 'production';
if (!isProduction && !SERVER_KEYS.some((key) => process.env[key] || process.env[fileVariable(key)])) {
  try {
    const env = readStackEnv(stackPaths(DEFAULT_DIR)) ?? {};
    for (const [key, value] of Object.entries(env)) process.env[key] ||= value as string;
  } catch (error) {
    const { report } = await import('../../src/cli/run-command-line.js');
    process.exit(report(error)); // damaged files, or files of another user
  }
}
