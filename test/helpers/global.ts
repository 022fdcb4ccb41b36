import fc from 'fast-check';
import sinon from 'sinon';
import { takeCoverage } from 'node:v8';
import { seedOfRun } from './seed.js';

// Each run uses the same cases unless SECKILL_SEED says otherwise, so that a failed run points to the change. Reporters
// do not print `cause`, so the counterexample is part of the error.
fc.configureGlobal({ seed: seedOfRun(), includeErrorInReport: true });

const rejections: unknown[] = [];

/**
 * After each test, restores every fake and fails if a promise was rejected without a handler. After each file, writes
 * the coverage of a `--parallel` worker, which is killed before it could do so at its end.
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
