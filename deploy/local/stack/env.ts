import { createHmac } from 'node:crypto';
import type { StackPorts } from './ports.js';
import type { StackSecrets } from './secrets.js';

/** What points the product at an instance. Every value is free of blanks and quotes. */
export interface StackEnv {
  /** `mysql://user:password@host:port/database` */
  readonly MYSQL_URL: string;
  /** `redis://host:port` */
  readonly REDIS_URL: string;
  /** `host:port` of the proxy, gRPC. */
  readonly ROCKETMQ_ENDPOINT: string;
  /** `host:port` of the name server, for admin work only. */
  readonly NAMESRV_ADDR: string;
  readonly JWT_SECRET: string;
  /** One key each, `local`. */
  readonly ADMISSION_SIGN_KEYS: string;
  readonly ADMISSION_SEAL_KEYS: string;
}

export const DATABASE = 'seckill';
export const DATABASE_USER = 'seckill';

export function stackEnv(ports: StackPorts, secrets: StackSecrets): StackEnv {
  return {
    MYSQL_URL: `mysql://${DATABASE_USER}:${secrets.mysqlPassword}@127.0.0.1:${ports.mariadb}/${DATABASE}`,
    REDIS_URL: `redis://127.0.0.1:${ports.redis}`,
    ROCKETMQ_ENDPOINT: `127.0.0.1:${ports.grpc}`,
    NAMESRV_ADDR: `127.0.0.1:${ports.namesrv}`,
    JWT_SECRET: secrets.jwtSecret,
    ADMISSION_SIGN_KEYS: `local:${madeOf(secrets.jwtSecret, 'sign')}`,
    ADMISSION_SEAL_KEYS: `local:${madeOf(secrets.jwtSecret, 'seal')}`,
  };
}

/** Made of the secret that every instance has, so that those that were made before need no new one. */
const madeOf = (secret: string, purpose: string): string =>
  createHmac('sha256', secret).update(`seckill entry ${purpose}`).digest('base64url');

/** Lines for a shell: `eval "$(npm run -s stack -- env)"`, or a file for `--env-file`. */
export function envLines(env: StackEnv): string {
  return Object.entries(env)
    .map(([key, value]) => `export ${key}=${value as string}\n`)
    .join('');
}
