import type { Section } from '../core/config/schema.js';
import { openMysqlPool } from '../mysql/pool.js';
import { createRefundRepository } from '../mysql/refund-repository.js';
import type { RefundRepository } from '../core/ports/refund-repository.js';

/** Opens the refunds for one piece of work, as a command line needs it, and closes them again. */
export async function withRefundRepository<T>(
  options: Section<'mysql'>,
  work: (refunds: RefundRepository) => Promise<T>,
) {
  const mysql = openMysqlPool(options);
  try {
    return await work(createRefundRepository(mysql));
  } finally {
    await mysql.close();
  }
}
