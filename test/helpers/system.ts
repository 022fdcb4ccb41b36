import { stopLoads } from '../chaos/harness/buyers.js';
import { closeConnections } from '../chaos/harness/http.js';
import { PATIENT_ENV, Programs } from '../chaos/harness/programs.js';
import { cleanWorld } from './clean-world.js';
import { openTestStack, type TestStack } from './stack.js';

/** Real servers and programs for one test file. */
export interface System {
  readonly stack: TestStack;
  readonly programs: Programs;
}

/**
 * Opens stack and programs before the tests of a file and ends every process afterwards, even after a failure. A
 * failed test keeps its data and shows the output of its programs.
 * @param start starts the programs that all tests of the file use
 */
export function useSystem(start: (system: System) => Promise<void> = () => Promise.resolve()): System {
  let stack: TestStack | null = null;
  let programs: Programs | null = null;

  before(async () => {
    stack = await openTestStack();
    if (!stack.servers.isSecure) await cleanWorld(stack); // on a secure stack, the user of the programs may not do that
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
