import sinon from 'sinon';
import { takeCoverage } from 'node:v8';

const rejections: unknown[] = [];

/**
 * One place that restores every fake, fails a run in which a promise was dropped, and writes the coverage of a worker of
 * `--parallel`, which is killed before it could do so itself.
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
    if (first !== undefined) throw new Error('a promise was rejected and nobody listened', { cause: first });
  },
};
