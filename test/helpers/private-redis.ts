import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BUNDLED } from '../../src/stack/arrange-artifacts.js';
import { DEFAULT_ARTIFACTS_DIR } from '../../src/stack/paths.js';
import { probeRedis } from '../../src/stack/probes.js';
import { waitUntil } from '../../src/stack/wait-until.js';

export interface PrivateRedis {
  readonly url: string;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 5000;

/** The program that the local stack runs, or the one that REDIS_SERVER_BIN names; null when there is none. */
export function redisServerBinary(): string | null {
  const own = process.env.REDIS_SERVER_BIN;
  if (own) return own;
  if (!existsSync(DEFAULT_ARTIFACTS_DIR)) return null;
  const found = readdirSync(DEFAULT_ARTIFACTS_DIR).map((home) => join(DEFAULT_ARTIFACTS_DIR, home, BUNDLED.redis));
  return found.find((file) => existsSync(file)) ?? null;
}

/** A Redis of the test's own, on a free port, keeping nothing: for faults that would hurt the tests beside it. */
export async function startPrivateRedis(binary: string): Promise<PrivateRedis> {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'seckill-redis-'));
  const memoryOnly = ['--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction'];
  const args = ['--bind', '127.0.0.1', '--port', String(port), '--dir', dir, ...memoryOnly];
  const server = spawn(binary, args, { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    server.kill('SIGKILL'); // it keeps nothing
    await ended;
    rmSync(dir, { recursive: true, force: true });
  };
  const isUp = async (): Promise<boolean> => (await probeRedis(port)) === null;
  if (await waitUntil(isUp, { timeoutMs: START_TIMEOUT_MS, everyMs: 20 })) {
    return { url: `redis://127.0.0.1:${port}`, stop };
  }
  await stop();
  throw new Error(`${binary} did not answer on port ${port} within ${START_TIMEOUT_MS} ms`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
