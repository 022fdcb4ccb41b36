import fc from 'fast-check';
import sinon from 'sinon';
import { takeCoverage } from 'node:v8';
import { seedOfRun } from './seed.js';

// Each run tries the same cases, unless SECKILL_SEED says otherwise: a red run must say something about the change.
// Reporters print no `cause`, and the reason of a counterexample stands there.
fc.configureGlobal({ seed: seedOfRun(), includeErrorInReport: true });

const rejections: unknown[] = [];

/**
 * After each test: restores every fake, and fails when a promise was rejected without a handler. After each file: writes
 * the coverage of a worker of `--parallel`, which is killed before it could do so at its end.
 */
export const mochaHooks = {
  beforeAll(): void {
    process.on('unhandledRejection', (reason) => rejections.push(reason));
  },
  afterAll(): void {
    if (process.env.NODE_V8_COVERAGE !== undefined && process.env.MOCHA_WORKER_ID !== undefined) takeCoverage();
  },
  afterEach(): void {
    sinon.restore();
    const [first] = rejections.splice(0);
    if (first !== undefined) throw new Error('unhandled rejection', { cause: first });
  },
};
