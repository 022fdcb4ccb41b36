import sinon from 'sinon';

const rejections: unknown[] = [];

/** After each test: restores every fake, and fails when a promise was rejected without a handler. */
export const mochaHooks = {
  beforeAll(): void {
    process.on('unhandledRejection', (reason) => rejections.push(reason));
  },
  afterEach(): void {
    sinon.restore();
    const [first] = rejections.splice(0);
    if (first !== undefined) throw new Error('unhandled rejection', { cause: first });
  },
};
