import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { askRemoting, REQUEST } from '../../src/rocketmq/admin/remoting.js';
import type { StackHands } from './harness/stack-hands.js';

/** What a report says of the run besides its rows. */
export interface Facts {
  /** Name → version, as the running servers say it. */
  readonly versions: Readonly<Record<string, string>>;
  /** One sentence. */
  readonly machine: string;
}

export async function readFacts({ servers, redis, mysql }: StackHands): Promise<Facts> {
  const [database] = await mysql.query<{ version: string }>('SELECT VERSION() AS version');
  const runtime = JSON.parse(
    await askRemoting({ host: '127.0.0.1', port: servers.ports.broker }, REQUEST.brokerRuntimeInfo),
  ) as { table?: { brokerVersionDesc?: string } };
  const broker = runtime.table?.brokerVersionDesc ?? '?';
  return {
    versions: {
      Node: process.versions.node,
      Redis: /^redis_version:(\S+)/m.exec(await redis.redis.info('server'))?.[1] ?? '?',
      MariaDB: database?.version ?? '?',
      RocketMQ: broker.replace(/^V/, '').replaceAll('_', '.'),
    },
    machine: machine(),
  };
}

function machine(): string {
  const memoryGib = Math.round(totalmem() / 1024 ** 3);
  const model = cpus()[0]?.model.trim() ?? '?';
  return `${cpus().length} cores (${model}), ${memoryGib} GiB, ${osName()}, Linux ${release()}`;
}

function osName(): string {
  try {
    return /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? process.platform;
  } catch {
    return process.platform;
  }
}
