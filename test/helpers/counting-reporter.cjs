// The spec reporter of mocha, which also writes its counts and failures into a file for test/run.ts.
const { writeFileSync } = require('node:fs');
const Mocha = require('mocha');

module.exports = class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const { EVENT_TEST_FAIL, EVENT_RUN_END } = Mocha.Runner.constants;
    const failures = [];
    runner.on(EVENT_TEST_FAIL, (test, error) => failures.push({ title: test.fullTitle(), reason: error.message }));
    runner.once(EVENT_RUN_END, () => {
      const { passes: passed, failures: failed, pending: skipped } = this.stats;
      const file = process.env.SECKILL_TEST_COUNTS;
      if (file) writeFileSync(file, JSON.stringify({ passed, failed, skipped, failures }));
    });
  }
};
