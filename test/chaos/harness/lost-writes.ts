import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import type { Arena } from '../arena.js';
import type { BucketStatus } from '../../../src/core/ports/repair-stores.js';
import { createRepairStore } from '../../../src/redis/repair-store.js';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import { expectAtLeast } from './expect.js';
import type { StackHands } from './stack-hands.js';
import { until } from './until.js';

/** Redis loses what it had confirmed. Only for rows that run alone. */

/** A repair waits for the workers; then for its turn among the sales of rows that ran before. */
const REPAIR_TIMEOUT_MS = 60_000;

/** Where the log of Redis ends, in bytes, once all that it has confirmed is in the file. */
export async function endOfLog({ redis: { redis }, servers }: StackHands): Promise<number> {
  await until('the log is written', async () => /aof_buffer_length:0\r/.test(await redis.info('persistence')));
  return statSync(logFile(servers.dir)).size;
}

/**
 * Kills Redis and starts it again without what it wrote after `keepBytes` of its log.
 * @returns how much is lost, in bytes
 */
export async function loseWritesAfter(stack: StackHands, keepBytes: number): Promise<number> {
  const server = stack.servers.server('redis');
  await server.stop({ signal: 'SIGKILL' });
  const file = logFile(stack.servers.dir);
  const lost = statSync(file).size - keepBytes;
  expectAtLeast(lost, 1, 'bytes of the log after the cut'); // a log that was rewritten is shorter
  truncateSync(file, keepBytes);
  await server.start();
  await server.waitReady();
  await until('we are connected again', async () => (await stack.redis.redis.ping()) === 'PONG');
  return lost;
}

/**
 * Lets Redis lose what it wrote after `keepBytes` of its log, and notes the proof, as `arena.bite` does. The keepers of the
 * row sleep meanwhile: they would repair before anybody has seen what is lost.
 */
export async function biteOfLostWrites(
  arena: Arena,
  keepBytes: number,
  what: string,
  proof: () => Promise<boolean>,
): Promise<void> {
  const keepers = arena.programs.running.filter(({ name }) => name === 'keeper');
  for (const keeper of keepers) keeper.signal('SIGSTOP');
  try {
    await loseWritesAfter(arena.stack, keepBytes);
    await arena.bite(what, proof);
  } finally {
    for (const keeper of keepers) keeper.signal('SIGCONT');
  }
}

/** How the only bucket of a sale stands against the server that has it. */
export async function standingOf({ redis }: StackHands, saleId: string): Promise<BucketStatus> {
  const [standing] = await createRepairStore(redis).bucketStatuses([{ saleId, bucket: 0 }]);
  return standing as BucketStatus;
}

/** Waits until a sale was rebuilt under a later epoch than this one. @returns its epoch */
export async function repaired(stack: StackHands, saleId: string, afterEpoch = 1): Promise<number> {
  let found = 0;
  const isRebuilt = async (): Promise<boolean> => {
    const { state, epoch, sameServer } = await standingOf(stack, saleId);
    found = epoch;
    return state !== null && state !== 'repair' && sameServer && epoch > afterEpoch;
  };
  await until(`sale ${saleId} is rebuilt`, isRebuilt, REPAIR_TIMEOUT_MS);
  return found;
}

/** Redis 7 keeps its log in parts, Redis 6 in one file. */
function logFile(stackDir: string): string {
  const dir = stackPaths(stackDir).data('redis');
  const files = readdirSync(dir, { recursive: true, encoding: 'utf8' });
  const file = files.find((name) => name.endsWith('.incr.aof')) ?? files.find((name) => name.endsWith('.aof'));
  if (file === undefined) throw new Error(`no log in ${dir}: ${files.join(', ')}`);
  return join(dir, file);
}
