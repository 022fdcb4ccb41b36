import { pause } from '../../core/after.js';
import { OperationalError } from '../../core/errors.js';
import type { BrokerAccess } from '../credentials.js';
import { brokersKnownTo, createGroup, createTopic, parseAddress, readGroups, readTopics } from './broker-state.js';
import type { RemotingAddress } from './remoting.js';
import { missingFrom, type TopicLists } from './topic-lists.js';

/** How long to read back. A broker may answer before the stored entry is visible. */
const READ_BACK_TIMEOUT_MS = 5_000;
const READ_BACK_EVERY_MS = 100;

export interface TopicsTarget extends BrokerAccess {
  /** `host:port` of name servers, separated by `;`, which are asked one after the other. */
  readonly namesrvAddr: string;
  /** If null, the only cluster, or the cluster that has our topics. */
  readonly cluster: string | null;
}

/** `unchanged`: all brokers already had everything. */
export type ApplyOutcome = 'created' | 'unchanged';

/**
 * Creates topics and groups on every master of a cluster and reads them back. Safe to repeat. Leaves other topics and
 * groups alone.
 * @throws OperationalError rocketmq, with a sentence for people, if a broker still lacks topics or groups in the end
 */
export async function applyTopics(
  target: TopicsTarget,
  lists: TopicLists,
  signal?: AbortSignal,
): Promise<ApplyOutcome> {
  const brokers = await brokersOf(target);
  const refusals: string[] = [];
  let outcome: ApplyOutcome = 'unchanged';
  for (const broker of brokers) {
    signal?.throwIfAborted();
    const missing = await missingAt(broker, target, lists);
    if (missing.topics.length === 0 && missing.groups.length === 0) continue;
    outcome = 'created';
    for (const topic of missing.topics) refusals.push(...(await refusalOf(createTopic(broker, topic))));
    for (const group of missing.groups) refusals.push(...(await refusalOf(createGroup(broker, group))));
  }
  if (outcome === 'created') await readBack(brokers, target, lists, refusals, signal);
  return outcome;
}

async function readBack(
  brokers: readonly RemotingAddress[],
  target: TopicsTarget,
  lists: TopicLists,
  refusals: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const endsAtMs = performance.now() + READ_BACK_TIMEOUT_MS;
  while (true) {
    signal?.throwIfAborted();
    const missing = new Set<string>();
    for (const broker of brokers) {
      const { topics, groups } = await missingAt(broker, target, lists);
      for (const { topicName } of topics) missing.add(`topic ${topicName}`);
      for (const { groupName } of groups) missing.add(`group ${groupName}`);
    }
    if (missing.size === 0) return;
    if (performance.now() >= endsAtMs || refusals.length > 0) {
      const why = refusals.length === 0 ? '' : ` (${[...new Set(refusals)].join('; ')})`;
      throw new OperationalError('rocketmq', `RocketMQ did not create ${[...missing].join(', ')}${why}.`, {
        retryable: true,
      });
    }
    await pause(READ_BACK_EVERY_MS);
  }
}

async function refusalOf(request: Promise<void>): Promise<string[]> {
  try {
    await request;
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

async function brokersOf({ namesrvAddr, cluster, ...access }: TopicsTarget): Promise<RemotingAddress[]> {
  for (const address of namesrvAddr.split(';')) assertAddress(address);
  try {
    return await brokersKnownTo(namesrvAddr, access, cluster);
  } catch (error) {
    const why = error instanceof OperationalError ? error.cause : error; // its sentence names the address too
    throw unreadable({ namesrvAddr, cluster, ...access }, why);
  }
}

async function missingAt(broker: RemotingAddress, target: TopicsTarget, lists: TopicLists): Promise<TopicLists> {
  try {
    const [topics, groups] = await Promise.all([readTopics(broker), readGroups(broker)]);
    return missingFrom({ topics, groups }, lists);
  } catch (error) {
    throw unreadable(target, error);
  }
}

const unreadable = ({ namesrvAddr }: TopicsTarget, error: unknown): OperationalError =>
  new OperationalError(
    'rocketmq',
    `Cannot read topics from the name server ${namesrvAddr} (${reasonOf(error)}); ` +
      'check NAMESRV_ADDR, and that the name server and the broker run.',
    { retryable: true, cause: error },
  );

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return message || code || 'it failed without a reason';
}

function assertAddress(address: string): void {
  try {
    parseAddress(address);
  } catch (error) {
    const sentence = `NAMESRV_ADDR must be host:port, but is "${address}".`;
    throw new OperationalError('rocketmq', sentence, { retryable: false, cause: error });
  }
}
