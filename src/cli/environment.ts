import type { Environment } from '../core/config/load.js';
import { openStack } from '../../deploy/local/stack/stack.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';

/** What points a program at its servers. */
const SERVER_KEYS = ['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT', 'NAMESRV_ADDR', 'JWT_SECRET'] as const;

/**
 * The environment of this command. When it names no server at all and a local stack was started here, the local one
 * is meant; whoever names one of them must name the others that a command needs.
 */
export function environment(env: Environment = process.env): Environment {
  if (SERVER_KEYS.some((key) => env[key])) return env;
  try {
    const named = Object.entries(env).filter(([, value]) => value); // keys of the entry may be one's own
    return { ...env, ...openStack().env(), ...Object.fromEntries(named) };
  } catch (error) {
    if (error instanceof StackError) return env; // never started: the configuration says what is missing
    throw error;
  }
}
