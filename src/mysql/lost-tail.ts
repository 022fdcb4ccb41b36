import { lostTail } from '../core/lost-tail.js';
import type { Outbox } from '../core/ports/outbox.js';
import type { OutboxMark } from '../core/ports/outbox-mark.js';
import type { Statements } from './pool.js';

// A promoted replica or restored copy may lack the last writes. New outbox rows would get ids of published rows, and
// consumers ignore an event whose id they know (decision 62).

/** The counter survives the removal of rows. A rolled-back transaction may leave a gap, which does no harm. */
const NEXT_ID = `SELECT AUTO_INCREMENT AS next FROM information_schema.tables
  WHERE table_schema = DATABASE() AND table_name = 'outbox'`;

/** Says why a server is unfit, or returns null. Reads the mark first, because later commits only raise the counter. */
export async function lostTailOf(session: Statements, mark: OutboxMark): Promise<string | null> {
  const published = await mark.read();
  if (published === null) return null;
  const lost = lostTail(await nextEventOf(session), published);
  if (lost === null) return null;
  return `${lost} It is a replica that was behind, or a restored copy. Stop all programs and run \`seckill restored\` (docs/durability.md)`;
}

/** Null if there are no tables. */
export async function nextEventOf(session: Statements): Promise<string | null> {
  const [row] = await session.query<{ next: string | null }>(NEXT_ID);
  return row === undefined ? null : (row.next ?? '1'); // MySQL 8.0 returns NULL until there is a row
}

/** Raises the mark before the leased rows are published. */
export const markingLeases = (outbox: Outbox, mark: OutboxMark): Outbox => ({
  ...outbox,
  async lease(kind, max, leaseMs) {
    const rows = await outbox.lease(kind, max, leaseMs);
    const ids = rows.map(({ outboxId }) => BigInt(outboxId));
    if (ids.length > 0) await mark.raise(ids.reduce((one, other) => (one > other ? one : other)));
    return rows;
  },
});
