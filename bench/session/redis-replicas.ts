import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisConnection } from '../../src/redis/connection.js';
import { listeningPorts, pickFreePorts } from '../../deploy/local/stack/ports.js';
import { DEFAULT_ARTIFACTS_DIR } from '../../deploy/local/stack/paths.js';
import { toolsOnce } from '../../deploy/local/stack/tools.js';
import { BenchError } from '../bench-error.js';

const SYNC_TIMEOUT_MS = 30_000;
const LOOK_EVERY_MS = 50;

/** Replicas of the Redis that is measured, on this machine: they take their share of its cores. */
export class RedisReplicas {
  readonly #children: ChildProcess[] = [];
  readonly #dir = mkdtempSync(join(tmpdir(), 'seckill-replicas-'));

  /** @throws BenchError when they do not follow in time */
  async start(count: number, masterPort: number, master: RedisConnection): Promise<void> {
    if (count === 0) return;
    const { artifacts } = await toolsOnce(DEFAULT_ARTIFACTS_DIR, process.env, () => undefined)();
    for (let index = 0; index < count; index++) {
      const port = pickFreePorts(listeningPorts()).redis;
      const where = ['--bind', '127.0.0.1', '--port', String(port), '--dir', this.#dir];
      const what = ['--save', '', '--appendonly', 'no', '--dbfilename', `${port}.rdb`];
      const args = [...where, ...what, '--replicaof', '127.0.0.1', String(masterPort)];
      this.#children.push(spawn(artifacts.redisServer, args, { stdio: 'ignore' }));
    }
    const untilMs = Date.now() + SYNC_TIMEOUT_MS;
    const online = async (): Promise<number> =>
      ((await master.redis.info('replication')).match(/state=online/g) ?? []).length;
    while ((await online()) < count) {
      if (Date.now() > untilMs) throw new BenchError(`the replicas of Redis do not follow after ${SYNC_TIMEOUT_MS} ms`);
      await sleep(LOOK_EVERY_MS);
    }
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        const ended = new Promise((resolve) => child.once('exit', resolve));
        if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await ended;
      }),
    );
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
