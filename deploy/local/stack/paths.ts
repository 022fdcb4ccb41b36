import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../../src/core/package-root.js';

/** The root of the checkout. */
export const REPO_DIR = resolve(fileURLToPath(PACKAGE_ROOT));
/** The pom and the templates of the server files. */
export const TEMPLATES_DIR = join(REPO_DIR, 'deploy', 'local', 'templates');
export const DEFAULT_DIR = join(REPO_DIR, '.stack');
/** Shared by all instances, so that tests reuse the downloads of `npm start`. */
export const DEFAULT_ARTIFACTS_DIR = join(DEFAULT_DIR, 'artifacts');

/** Linux allows 107 bytes for the path of a unix socket. */
const SOCKET_PATH_MAX = 100;

/** The paths of one instance. All are below `dir`, except a socket whose path would be too long. */
export interface StackPaths {
  readonly dir: string;
  readonly instanceFile: string;
  readonly secretsFile: string;
  readonly lockFile: string;
  /** Held by the command that runs the whole system on this instance. */
  readonly systemLockFile: string;
  readonly mysqlSocket: string;
  /** Configuration files, rewritten at every start. */
  conf(file: string): string;
  /** Persistent data, one folder per server. */
  data(name: string): string;
  log(name: string): string;
  pidFile(server: string): string;
  /** Emptied before its server starts. */
  tmp(server: string): string;
}

export function stackPaths(instanceDir: string): StackPaths {
  const dir = resolve(instanceDir);
  const socket = join(dir, 'run', 'mysql.sock');
  const short = join(tmpdir(), `seckill-${createHash('sha256').update(dir).digest('hex').slice(0, 12)}.sock`);
  return {
    dir,
    instanceFile: join(dir, 'instance.json'),
    secretsFile: join(dir, 'secrets.json'),
    lockFile: join(dir, 'run', 'up.lock'),
    systemLockFile: join(dir, 'run', 'system.lock'),
    mysqlSocket: Buffer.byteLength(socket) <= SOCKET_PATH_MAX ? socket : short,
    conf: (file) => join(dir, 'conf', file),
    data: (name) => join(dir, 'data', name),
    log: (name) => join(dir, 'log', name),
    pidFile: (server) => join(dir, 'run', `${server}.pid`),
    tmp: (server) => join(dir, 'tmp', server),
  };
}
