import type { Statements } from '../../src/mysql/pool.js';

const DIGITS = `(SELECT ${[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].join(' AS d UNION ALL SELECT ')} AS d)`;

/**
 * Makes a table `numbers` whose column `seq` counts from 1 to `count`, because only MariaDB can select from a sequence.
 * @param kind only the connection that makes a temporary table can see it
 */
export async function makeNumbers(
  on: Statements,
  count: number,
  kind: 'TABLE' | 'TEMPORARY TABLE' = 'TABLE',
): Promise<void> {
  const places = Array.from(String(count - 1), (_digit, place) => place);
  const value = `1 + ${places.map((place) => `d${place}.d * ${10 ** place}`).join(' + ')}`;
  const digits = places.map((place) => `${DIGITS} AS d${place}`).join(', ');
  await on.execute(`CREATE ${kind} numbers (seq INT NOT NULL PRIMARY KEY)`);
  await on.execute(`INSERT INTO numbers SELECT ${value} AS seq FROM ${digits} WHERE ${value} <= ${count} ORDER BY seq`);
}
