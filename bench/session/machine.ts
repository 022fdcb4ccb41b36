import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { adminPortOf } from '../../test/helpers/broker.js';
import { loadConfig } from '../../src/core/config/load.js';
import { askRemoting, REQUEST } from '../../src/rocketmq/admin/remoting.js';
import type { Session } from './session.js';

/** Properties of the machine and the servers that affect figures. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly os: string;
  readonly versions: {
    readonly node: string;
    readonly redis: string;
    readonly mariadb: string;
    readonly rocketmq: string;
  };
  /** The data that each server guarantees to keep. */
  readonly durability: Readonly<Record<string, string>>;
  /** Product settings that applied, except where a scenario says otherwise. */
  readonly settings: Readonly<Record<string, number>>;
}

/** Asks the running servers as far as they report their properties. */
export async function describeMachine({ stack, stores, env }: Session): Promise<Machine> {
  const info = await stores.redis.redis.info('server');
  const aof = (await stores.redis.redis.config('GET', 'append*')) as string[];
  const setting = (name: string): string => aof[aof.indexOf(name) + 1] ?? '?';
  const [mariadb] = await stores.mysql.query<{ version: string; flush: number }>(
    'SELECT VERSION() AS version, @@innodb_flush_log_at_trx_commit AS flush',
  );
  const runtime = JSON.parse(await askRemoting(adminPortOf(stack), REQUEST.brokerRuntimeInfo)) as {
    table?: { brokerVersionDesc?: string };
  };
  const { batch, worker, redis } = loadConfig(['batch', 'worker', 'redis'], env);
  return {
    cpu: cpus()[0]?.model.trim() ?? '?',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 1024 ** 3),
    os: `${osName()}, Linux ${release()}`,
    versions: {
      node: process.versions.node,
      redis: /^redis_version:(\S+)/m.exec(info)?.[1] ?? '?',
      mariadb: mariadb?.version ?? '?',
      rocketmq: (runtime.table?.brokerVersionDesc ?? '?').replace(/^V/, '').replaceAll('_', '.'),
    },
    durability: {
      'redis appendonly': setting('appendonly'),
      'redis appendfsync': setting('appendfsync'),
      'redis replicas waited for': String(redis.waitReplicas),
      'mariadb innodb_flush_log_at_trx_commit': String(mariadb?.flush ?? '?'),
      'rocketmq flushDiskType': flushDiskType(stack.dir),
    },
    settings: {
      BATCH_SIZE_MAX: batch.sizeMax,
      BATCH_IN_FLIGHT_MAX: batch.inFlightMax,
      BATCH_GATHER_MS: batch.gatherMs,
      WORKER_LOOPS: worker.loops,
      WORKER_RECEIVE_MAX: worker.receiveMax,
    },
  };
}

/** Returns the commit of a checkout, or null without git. */
export function commitOf(folder: string): string | null {
  const { stdout, status } = spawnSync('git', ['-C', folder, 'rev-parse', '--short', 'HEAD'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}

function osName(): string {
  try {
    return /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? process.platform;
  } catch {
    return process.platform;
  }
}

/** Read from the configuration file of the broker, because its admin protocol does not show it. */
function flushDiskType(stackDir: string): string {
  try {
    return /^flushDiskType=(\S+)$/m.exec(readFileSync(`${stackDir}/conf/broker.conf`, 'utf8'))?.[1] ?? '?';
  } catch {
    return '?';
  }
}
