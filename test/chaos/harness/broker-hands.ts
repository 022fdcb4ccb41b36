import { TOPICS } from '../../../src/core/topics.js';
import { findMessages } from '../../../src/rocketmq/admin/find-messages.js';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import type { Stack } from '../../../deploy/local/stack/stack.js';
import { readTopicLists } from '../../../src/rocketmq/admin/topic-lists.js';
import type { Arena } from '../arena.js';
import { EAR_GROUP } from './event-ear.js';
import type { StackHands } from './stack-hands.js';

// The broker, which is one process with its proxy here. Only for rows that run alone.

export async function killBroker(arena: Pick<Arena, 'stack' | 'bite'>): Promise<void> {
  const proxy = arena.stack.servers.server('proxy');
  await proxy.stop({ signal: 'SIGKILL' });
  await arena.bite('broker and proxy were killed', () => proxy.pid() === null);
}

/** Resolves when it serves. */
export async function startBroker({ servers }: Pick<StackHands, 'servers'>): Promise<void> {
  const proxy = servers.server('proxy');
  await proxy.start();
  await proxy.waitReady();
}

/** The folder with all that the broker remembers: messages, topics, groups, offsets. */
export const brokerStore = ({ servers }: Pick<StackHands, 'servers'>): string =>
  stackPaths(servers.dir).data('rocketmq');

/** Every topic and group of the product, and the group of the ear: a broker with an empty store has none. */
export async function createTopics(stack: Pick<Stack, 'applyTopics'>): Promise<void> {
  const { topics, groups } = readTopicLists();
  await stack.applyTopics({ topics, groups: [...groups, { groupName: EAR_GROUP, retryMaxTimes: 16 }] });
}

/** How many of these batches the broker has a committed message of. */
export async function batchesAtBroker(
  { servers }: Pick<StackHands, 'servers'>,
  batchIds: readonly string[],
): Promise<number> {
  const broker = { host: '127.0.0.1', port: servers.ports.broker };
  let found = 0;
  for (const batchId of batchIds) {
    const stored = await findMessages(broker, TOPICS.purchase, batchId);
    if (stored.length > 0) found++;
  }
  return found;
}
