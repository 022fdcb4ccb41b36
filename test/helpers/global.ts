import sinon from 'sinon';

const rejections: unknown[] = [];

/** One place that restores every fake and fails a run in which a promise was dropped. */
export const mochaHooks = {
  beforeAll(): void {
    process.on('unhandledRejection', (reason) => rejections.push(reason));
  },
  afterEach(): void {
    sinon.restore();
    const [first] = rejections.splice(0);
    if (first !== undefined) throw new Error('a promise was rejected and nobody listened', { cause: first });
  },
};
