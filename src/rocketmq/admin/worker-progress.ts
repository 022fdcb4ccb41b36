import { OperationalError } from '../../core/errors.js';
import type { QueueEnds, WorkerProgress } from '../../core/ports/channels.js';
import { GROUP_TOPICS, GROUPS } from '../../core/topics.js';
import type { BrokerAccess } from '../credentials.js';
import { addressOf, brokersKnownTo } from './broker-state.js';
import { readGroupQueues, walkQueue } from './inspect-broker.js';
import type { RemotingAddress } from './remoting.js';

/** A queue of a broker, as a group reads it. */
interface QueueStats {
  readonly queue: string;
  readonly broker: RemotingAddress;
  readonly topic: string;
  readonly queueId: number;
  /** Offset after the last message. */
  readonly end: number;
  /** Offset after the last message delivered to any consumer. */
  readonly received: number;
}

const LATELY_MS = 200;
/** Maximum number of messages of a queue that are read to name their sales. This takes some hundredths of a second. */
const UNRECEIVED_MAX = 256;

export interface Consumed {
  readonly topic: string;
  readonly group: string;
}

const BATCHES: readonly Consumed[] = [GROUPS.writer, GROUPS.redriveWriter].map((group) => {
  return { group, topic: GROUP_TOPICS[group] };
});

/**
 * Uses the admin protocol, because gRPC endpoints report no offsets. With pop, the offset of a group moves when a
 * message is given to a consumer, not when it is acked.
 */
export function createWorkerProgress(
  namesrvAddr: string,
  access: BrokerAccess | null,
  consumed: readonly Consumed[] = BATCHES,
): WorkerProgress {
  const ask = async (): Promise<QueueStats[]> => {
    try {
      const found: QueueStats[] = [];
      for (const broker of await brokersKnownTo(namesrvAddr, access, null))
        for (const one of consumed) found.push(...(await statsOf(broker, one)));
      return found;
    } catch (cause) {
      const why = cause instanceof OperationalError ? cause.message : `NAMESRV_ADDR ${namesrvAddr}: ${String(cause)}`;
      throw new OperationalError('rocketmq', `cannot read the progress of the workers: ${why}`, {
        retryable: true,
        cause,
      });
    }
  };
  let last: { readonly atMs: number; readonly stats: Promise<QueueStats[]> } | null = null;
  const now = (): Promise<QueueStats[]> => {
    last = { atMs: performance.now(), stats: ask() };
    return last.stats;
  };
  // After a restart of Redis, many sales wait at once. The number of received messages only grows, so a recent answer
  // is enough.
  const lately = (): Promise<QueueStats[]> =>
    last !== null && performance.now() - last.atMs < LATELY_MS ? last.stats : now();
  return {
    ends: async () => new Map((await now()).map(({ queue, end }) => [queue, end])),
    async haveReceived(ends: QueueEnds): Promise<boolean> {
      const received = new Map((await lately()).map((one) => [one.queue, one.received]));
      return [...ends].every(([queue, end]) => end === 0 || (received.get(queue) ?? 0) >= end);
    },
    async unreceivedSales(ends: QueueEnds): Promise<ReadonlySet<string> | null> {
      const sales = new Set<string>();
      for (const stats of await lately()) {
        const end = ends.get(stats.queue) ?? 0;
        if (end - stats.received > UNRECEIVED_MAX) return null;
        let count = 0;
        for await (const { properties } of walkQueue(stats.broker, stats.topic, stats.queueId, {
          from: stats.received,
          end,
        })) {
          if (properties.saleId === undefined) return null;
          sales.add(properties.saleId);
          count++;
        }
        if (count < end - stats.received) return null; // the broker has removed some of them
      }
      return sales;
    },
  };
}

async function statsOf(broker: RemotingAddress, { topic, group }: Consumed): Promise<QueueStats[]> {
  // A missing topic is an error: without queues, everything would seem received.
  const queues = await readGroupQueues(broker, group, topic, []);
  const prefix = `${addressOf(broker)}/${topic}/`;
  return queues.map(({ queueId, end, given: received }) => ({
    queue: prefix + queueId,
    broker,
    topic,
    queueId,
    end,
    received,
  }));
}
