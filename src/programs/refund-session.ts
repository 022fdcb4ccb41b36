import type { Section } from '../core/config/schema.js';
import { openMysqlPool } from '../mysql/pool.js';
import { createRefundBook } from '../mysql/refund-book.js';
import type { RefundBook } from '../core/ports/refund-book.js';

/** Opens the refunds for one piece of work, as a command line needs it, and closes them again. */
export async function withRefundBook<T>(options: Section<'mysql'>, work: (refunds: RefundBook) => Promise<T>) {
  const mysql = openMysqlPool(options);
  try {
    return await work(createRefundBook(mysql));
  } finally {
    await mysql.close();
  }
}
