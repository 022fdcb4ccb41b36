import type { ReadyReport } from '../http/services.js';
import type { MysqlPool } from '../mysql/pool.js';
import type { RedisConnection } from '../redis/connection.js';
import { probeRedisWrites } from '../redis/probe.js';
import type { ChannelHealth } from '../rocketmq/channel-health.js';
import { probeBroker } from '../rocketmq/probe.js';

export interface ReadinessParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly endpoint: string;
  readonly health?: ChannelHealth;
}

/** A probe asks every dependency at once; two probes at the same time share the answers. */
export function createReadiness({ redis, mysql, endpoint, health }: ReadinessParts): () => Promise<ReadyReport> {
  let underWay: Promise<ReadyReport> | null = null;
  const ask = async (): Promise<ReadyReport> => {
    const [redisProbe, brokerProbe, mysqlDetail] = await Promise.all([
      probeRedisWrites(redis),
      probeBroker(endpoint, health),
      mysql.probe().then(
        () => null,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      ),
    ]);
    const dependencies = [
      { name: 'redis', ...redisProbe },
      {
        name: 'rocketmq',
        ok: brokerProbe.state === 'reachable',
        detail: brokerProbe.state === 'reachable' ? endpoint : brokerProbe.detail,
      },
      { name: 'mysql', ok: mysqlDetail === null, detail: mysqlDetail ?? 'answers' },
    ];
    return { ready: dependencies.every((dependency) => dependency.ok), dependencies };
  };
  return () => {
    underWay ??= ask().finally(() => {
      underWay = null;
    });
    return underWay;
  };
}
