import { openStack } from './stack/stack.js';
import { StackError } from './stack/stack-error.js';

/** What points a program at its servers. */
const SERVER_KEYS = ['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT', 'NAMESRV_ADDR', 'JWT_SECRET'] as const;

// Where the environment names no server at all, the local stack is meant, if it was ever started. Whoever names one of
// them must name the others that a command needs.
if (!SERVER_KEYS.some((key) => process.env[key])) {
  try {
    for (const [key, value] of Object.entries(openStack().env())) process.env[key] ||= value as string;
  } catch (error) {
    if (!(error instanceof StackError)) throw error; // never started: the configuration says what is missing
  }
}
await import('../../src/cli/main.js');
