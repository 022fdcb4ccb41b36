import type { OutboxMark } from '../core/ports/outbox-mark.js';
import type { RedisConnection } from './connection.js';
import { OUTBOX_MARK_KEY } from './keys.js';

const MEMBER = 'outbox';

/**
 * The mark is the score of a sorted set: exact up to 2^53, and `GT` never lowers it. One instance per process, because
 * it also remembers the mark.
 */
export function createOutboxMark({ redis }: RedisConnection): OutboxMark {
  let highest: bigint | null = null;
  return {
    async read() {
      try {
        const score = await redis.zscore(OUTBOX_MARK_KEY, MEMBER);
        const stored = score === null ? null : BigInt(score);
        if (stored !== null && (highest === null || stored > highest)) highest = stored;
        return stored;
      } catch {
        return highest;
      }
    },
    async raise(outboxId) {
      if (highest === null || outboxId > highest) highest = outboxId;
      await redis.zadd(OUTBOX_MARK_KEY, 'GT', highest.toString(), MEMBER).catch(() => undefined);
    },
  };
}
