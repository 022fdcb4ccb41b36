import { ConfigError } from '../src/core/config/load.js';
import { OperationalError } from '../src/core/errors.js';
import { StackError } from '../deploy/local/stack/stack-error.js';
import { BenchError } from './bench-error.js';
import { runBench } from './bench.js';
import { parseOptions } from './options.js';
import { reportNotes, reportTable } from './report/report.js';
import { isBad } from './results.js';

/** Exit codes: 0 done, 1 failed or Redis and MySQL differ, 2 used wrongly, 130 interrupted. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

const startedAt = performance.now();
const say = (line: string): void => {
  process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(7)}s  ${line}\n`);
};

const interrupted = new AbortController();
const interrupt = (): void => {
  if (interrupted.signal.aborted) return; // the first one is being obeyed, and leaves nothing behind
  interrupted.abort(new BenchError('interrupted; what was started is stopped again'));
};
process.on('SIGINT', interrupt).on('SIGTERM', interrupt);

const options = parseOptions(process.argv.slice(2), (code) => process.exit(code));
try {
  const report = await runBench(options, { say, signal: interrupted.signal });
  if (options.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else process.stdout.write(`${reportTable(report.results)}\n\n${reportNotes(report)}\n`);
  process.exitCode = report.results.some(isBad) ? EXIT_FAILED : 0;
} catch (error) {
  process.exitCode = exitCodeOf(interrupted.signal.aborted ? interrupted.signal.reason : error);
}

/** What a person can mend is one sentence; anything else is our mistake and keeps its stack. */
function exitCodeOf(error: unknown): number {
  const known = [BenchError, StackError, OperationalError, ConfigError].some((kind) => error instanceof kind);
  console.error(known ? `bench: ${(error as Error).message}` : error);
  if (interrupted.signal.aborted) return EXIT_INTERRUPTED;
  return error instanceof ConfigError ? EXIT_USAGE : EXIT_FAILED;
}
