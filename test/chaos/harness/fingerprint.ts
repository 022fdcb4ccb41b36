import { createHash } from 'node:crypto';
import { encodeRequest, exchange, REQUEST } from '../../../src/rocketmq/admin/remoting.js';
import { readTopicLists } from '../../../src/rocketmq/admin/topic-lists.js';
import type { StackHands } from './stack-hands.js';

/** What programs that have nothing to do write all the same: the lease of a worker. */
const RESTLESS_TABLE = 'worker_slots';

/** What a system holds: rows by table, keys that stay, messages by topic; equal when nothing was touched. */
export interface Fingerprint {
  /** Table → the checksum of the server over all its rows. */
  readonly tables: Readonly<Record<string, string>>;
  /** How many keys of Redis have no time to live, and a hash over them and what they hold. */
  readonly keys: { readonly count: number; readonly hash: string };
  /** Topic → messages that were ever stored; without those that wait for their time. */
  readonly messages: Readonly<Record<string, number>>;
}

/** Takes the fingerprint of a stack at rest, without a keeper: of one at work no two are equal. */
export async function fingerprintOf(stack: StackHands): Promise<Fingerprint> {
  const [tables, keys, messages] = await Promise.all([tablesOf(stack), keysOf(stack), messagesOf(stack)]);
  return { tables, keys, messages };
}

async function tablesOf({ mysql }: StackHands): Promise<Record<string, string>> {
  const known = await mysql.query<{ name: string }>(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name',
  );
  const names = known.map(({ name }) => name).filter((name) => name !== RESTLESS_TABLE);
  const sums = await mysql.query<{ Table: string; Checksum: string }>(`CHECKSUM TABLE ${names.join()}`);
  return Object.fromEntries(sums.map(({ Table, Checksum }) => [Table, String(Checksum)]));
}

async function keysOf({ redis: { redis } }: StackHands): Promise<Fingerprint['keys']> {
  const held: string[] = [];
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'COUNT', 1000);
    cursor = next;
    for (const key of keys) {
      if ((await redis.pttl(key)) !== -1) continue; // a cache, or what goes by itself
      held.push(`${key} ${(await redis.dumpBuffer(key))?.toString('base64')}`);
    }
  } while (cursor !== '0');
  const unique = [...new Set(held)].sort(); // a scan may show a key twice
  return { count: unique.length, hash: createHash('sha256').update(unique.join('\n')).digest('hex') };
}

async function messagesOf({ servers }: StackHands): Promise<Record<string, number>> {
  const broker = { host: '127.0.0.1', port: servers.ports.broker };
  // of a DELAY topic the broker itself moves the messages, when their time has come
  const topics = readTopicLists().topics.filter(({ attributes }) => attributes['+message.type'] !== 'DELAY');
  const counts = topics.map(async ({ topicName }): Promise<[string, number]> => {
    const { code, remark, body } = await exchange(broker, encodeRequest(REQUEST.topicStats, '', { topic: topicName }));
    if (code !== 0) throw new Error(remark ?? `the broker refused with code ${code}`);
    // its keys are objects, which is no JSON; queues begin at 0
    const offsets = [...body.matchAll(/"maxOffset":(\d+)/g)].map(([, offset]) => Number(offset));
    return [topicName, offsets.reduce((sum, offset) => sum + offset, 0)];
  });
  return Object.fromEntries(await Promise.all(counts));
}
