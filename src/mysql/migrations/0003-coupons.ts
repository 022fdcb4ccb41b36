import type { Knex } from 'knex';

const ID = 'VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin';

/** One coupon per paid order, for ever: the order is the key. `buyer` answers which coupons somebody has. */
const COUPONS = `CREATE TABLE IF NOT EXISTS coupons (
  order_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  sale_id BIGINT UNSIGNED NOT NULL,
  user_id ${ID} NOT NULL,
  created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  KEY buyer (user_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`;

export async function up(knex: Knex): Promise<void> {
  await knex.raw(COUPONS);
}
