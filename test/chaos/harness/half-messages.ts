import { TOPICS } from '../../../src/core/topics.js';
import { findMessages } from '../../../src/rocketmq/admin/find-messages.js';
import type { StackHands } from './stack-hands.js';

/** What the broker itself knows of half messages. */

/** Topics of its own, which clients cannot read: half messages, and those that it has given up. */
const HALF = 'RMQ_SYS_TRANS_HALF_TOPIC';
const GIVEN_UP = 'TRANS_CHECK_MAX_TIME_TOPIC';

type Broker = Pick<StackHands, 'servers'>;

/** Whether it has given up the half message of a batch: it asks nobody about it any more. */
export async function isGivenUp(broker: Broker, batchId: string): Promise<boolean> {
  return (await timesIn(broker, GIVEN_UP, batchId)).length > 0;
}

/** How long the half message of a batch was open, ms on the clock of the broker; null: nobody has committed it. */
export async function openForMs(broker: Broker, batchId: string): Promise<number | null> {
  const [halfAtMs] = await timesIn(broker, HALF, batchId);
  const [committedAtMs] = await timesIn(broker, TOPICS.purchase, batchId);
  return halfAtMs === undefined || committedAtMs === undefined ? null : committedAtMs - halfAtMs;
}

const timesIn = ({ servers }: Broker, topic: string, batchId: string): Promise<number[]> =>
  findMessages({ host: '127.0.0.1', port: servers.ports.broker }, topic, batchId);
