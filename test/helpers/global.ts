import fc from 'fast-check';
import sinon from 'sinon';
import { takeCoverage } from 'node:v8';
import { seedOfRun } from './seed.js';

// Each run uses the same cases by default, so that a failure points to the change. Reporters do not print `cause`, so
// the error includes the counterexample.
fc.configureGlobal({ seed: seedOfRun(), includeErrorInReport: true });

const rejections: unknown[] = [];

/**
 * After each test, restores every fake, and fails for a rejected promise without a handler. After each file, writes the
 * coverage of a `--parallel` worker, which is killed at its end.
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
