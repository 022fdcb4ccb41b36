import { expect } from 'chai';
import { planText } from '../../../src/cli/setup.js';

describe('seckill migrate --dry-run', () => {
  it('shows the SQL of each migration and which clients each statement blocks', () => {
    const made = { table: 'gifts', rows: null, bytes: null };
    const missing = [
      {
        name: '0023-gifts',
        statements: [
          { ...made, statement: 'CREATE TABLE IF NOT EXISTS gifts (\n  id INT\n)', locks: 'none' as const },
          { ...made, statement: 'ALTER TABLE gifts ADD KEY id (id)', locks: 'none' as const },
          {
            table: 'sales',
            rows: 40,
            bytes: 65_536,
            statement: 'ALTER TABLE sales ADD COLUMN gift INT',
            locks: 'short' as const,
          },
        ],
      },
      {
        name: '0024-gifts-of-orders',
        statements: [
          {
            table: 'orders',
            rows: 9e6,
            bytes: 3e9,
            statement: 'ALTER TABLE orders ADD COLUMN gift INT',
            locks: 'online' as const,
          },
          { table: 'orders', rows: 9e6, bytes: 3e9, statement: 'UPDATE orders SET gift = 1', locks: 'rows' as const },
        ],
      },
    ];
    expect(planText({ missing, newer: [] })).to.equal(`0023-gifts
  CREATE TABLE IF NOT EXISTS gifts (
    id INT
  );
  -- new table: blocks nothing

  ALTER TABLE gifts ADD KEY id (id);
  -- gifts is new: blocks nothing

  ALTER TABLE sales ADD COLUMN gift INT;
  -- sales has 40 rows, 0.1 MB: writes continue if the server can alter it online; otherwise they wait while the table is copied

0024-gifts-of-orders
  ALTER TABLE orders ADD COLUMN gift INT;
  -- orders has 9000000 rows, 3000.0 MB: writes continue; if the server cannot alter it online, migrate stops here

  UPDATE orders SET gift = 1;
  -- writes rows, in short transactions over orders (9000000 rows, 3000.0 MB)

Nothing was changed. Missing: 5 statements.`);
  });

  it('says if no migration is missing, and if a later release has already migrated', () => {
    expect(planText({ missing: [], newer: [] })).to.equal('The schema is up to date.');
    expect(planText({ missing: [], newer: ['0025-later'] })).to.match(
      /^A later release migrated this database: 0025-later\..*\nThe schema is up to date\.$/,
    );
  });
});
