import { TABLE_NAMES } from '../../src/mysql/tables.js';
import { stopLoads } from '../chaos/harness/buyers.js';
import { closeConnections } from '../chaos/harness/http.js';
import { PATIENT_ENV, Programs } from '../chaos/harness/programs.js';
import { openTestStack, type TestStack } from './stack.js';

/** Real servers and programs for one test file. */
export interface System {
  readonly stack: TestStack;
  readonly programs: Programs;
}

/**
 * Opens stack and programs before the tests of a file and ends every process afterwards, even after a failure. If a
 * test failed, its data is kept and the output of its programs is shown.
 * @param start starts the programs that all tests of the file use
 */
export function useSystem(start: (system: System) => Promise<void> = () => Promise.resolve()): System {
  let stack: TestStack | null = null;
  let programs: Programs | null = null;

  before(async () => {
    stack = await openTestStack();
    if (!stack.servers.isSecure) await cleanWorld(stack); // the user of the programs on a secure stack may not do that
    programs = new Programs({ ...process.env, ...PATIENT_ENV, ...stack.env }, stack.servers.dir);
    await start({ stack, programs });
  });
  afterEach(function () {
    if (this.currentTest?.state === 'failed') console.error(programs?.logTails());
  });
  after(async () => {
    await stopLoads();
    await programs?.close();
    closeConnections();
    await stack?.close();
  });

  const opened = <T>(part: T | null): T => {
    if (part === null) throw new Error('the system is there from `before` on, not while tests are declared');
    return part;
  };
  return {
    get stack() {
      return opened(stack);
    },
    get programs() {
      return opened(programs);
    },
  };
}

/** Migrations fill these tables, and programs insert no rows into them. */
const KEPT = new Set(['sale_calendar', 'worker_slots']);

/**
 * Empties MySQL and Redis while no program runs, so that the next programs have no work from earlier tests. Ids keep
 * ascending, so messages of earlier tests belong to no new sale.
 */
async function cleanWorld({ mysql, redis }: Pick<TestStack, 'mysql' | 'redis'>): Promise<void> {
  for (const table of TABLE_NAMES.filter((name) => !KEPT.has(name))) await mysql.query(`DELETE FROM ${table}`);
  await mysql.query('UPDATE worker_slots SET owner = NULL, leased_until = UTC_TIMESTAMP(3) WHERE owner IS NOT NULL');
  await redis.redis.flushall();
}
