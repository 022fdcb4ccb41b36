// A reporter for mocha: prints a line for each finished file, and each failure at once. If SECKILL_TEST_COUNTS names a
// file, it also gets a line of JSON per test file, so that even a process that dies has reported the files it finished.
const { appendFileSync } = require('node:fs');
const { relative } = require('node:path');
const Mocha = require('mocha');

const { EVENT_SUITE_BEGIN, EVENT_TEST_PASS, EVENT_TEST_FAIL, EVENT_TEST_PENDING, EVENT_RUN_END } =
  Mocha.Runner.constants;
const { Base } = Mocha.reporters;
const SLOW_MS = Number(process.env.SECKILL_TEST_SLOW_MS ?? Infinity);

module.exports = class FileReporter extends Base {
  #current = null;
  #isParallel;

  constructor(runner, options) {
    super(runner, options);
    this.#isParallel = options.parallel === true;
    runner.on(EVENT_SUITE_BEGIN, (suite) => suite.parent?.root && suite.file && this.#fileOf(suite.file));
    runner.on(EVENT_TEST_PASS, (test) => {
      const file = this.#fileOf(test.file);
      file.passed++;
      file.testMs += test.duration ?? 0;
      if (test.duration >= SLOW_MS) console.log(`      ${(test.duration / 1000).toFixed(1)} s  ${test.fullTitle()}`);
    });
    runner.on(EVENT_TEST_PENDING, (test) => {
      this.#fileOf(test.file).skipped++;
      console.log(`  - skipped: ${test.fullTitle()}`);
    });
    runner.on(EVENT_TEST_FAIL, (test, error) => {
      const file = this.#fileOf(test.file);
      file.failures.push({ title: test.fullTitle(), reason: error.message });
      console.log(`  ${Base.color('fail', `✗ ${file.name}`)}`);
      Base.list([test]);
    });
    runner.once(EVENT_RUN_END, () => {
      this.#end();
      record({ ended: true });
    });
  }

  /** The counts of the running file; the file before it has ended. */
  #fileOf(path) {
    const name = path === undefined ? (this.#current?.name ?? '') : relative(process.cwd(), path);
    if (this.#current?.name !== name) {
      this.#end();
      this.#current = { name, passed: 0, skipped: 0, failures: [], testMs: 0, beganMs: Date.now() };
    }
    return this.#current;
  }

  #end() {
    if (this.#current === null) return;
    const { name, passed, skipped, failures, testMs, beganMs } = this.#current;
    this.#current = null;
    // a parallel run reports a file only when it has ended
    const tookMs = this.#isParallel ? testMs : Date.now() - beganMs;
    const failed = failures.length;
    const counts = [
      `${passed} passed`,
      ...(failed > 0 ? [`${failed} failed`] : []),
      ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ];
    const sign = failed > 0 ? Base.color('fail', '✗') : Base.color('checkmark', '✓');
    console.log(`  ${sign} ${name}  ${counts.join(', ')}, ${(tookMs / 1000).toFixed(1)} s`);
    record({ file: name, passed, failed, skipped, tookMs, failures });
  }
};

function record(line) {
  const path = process.env.SECKILL_TEST_COUNTS;
  if (path) appendFileSync(path, `${JSON.stringify(line)}\n`);
}
