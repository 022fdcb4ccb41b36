import { loadavg } from 'node:os';
import { ConfigError } from '../src/core/config/load.js';
import { assertNever, OperationalError } from '../src/core/errors.js';
import { StackError } from '../deploy/local/stack/stack-error.js';
import { BenchError } from './bench-error.js';
import { BuyerPool, prepareBuyers } from './load/buyers.js';
import { parseOptions, type BenchOptions, type ScenarioName } from './options.js';
import { judgeGoals, reportNotes, reportTable, type Report } from './report.js';
import { isBad, type ScenarioResult } from './results.js';
import { BUYERS_PER_SECOND, flashRateOf, secondsOf, type Context } from './scenarios/context.js';
import { crowd } from './scenarios/crowd.js';
import { flash } from './scenarios/flash.js';
import { fleet } from './scenarios/fleet.js';
import { limits } from './scenarios/limits.js';
import { paired, WARM_UP_SLICE_SECONDS } from './scenarios/paired.js';
import { soldOut } from './scenarios/sold-out.js';
import { memory, noGroupCommit, WARM_UP_ROUND_SECONDS, warmUp, warmUpSeconds, win } from './scenarios/win.js';
import { commitOf, describeMachine } from './session/machine.js';
import { withSession, type Progress } from './session/session.js';

/** Exit codes: 0 done, 1 failed or a check failed, 2 wrong usage, 130 interrupted. */
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

const startedAt = performance.now();
const progress = (line: string): void => {
  process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(7)}s  ${line}\n`);
};

const interrupted = new AbortController();
const interrupt = (): void => {
  if (interrupted.signal.aborted) return; // the first interrupt already ends the run
  interrupted.abort(new BenchError('interrupted; stopped everything that was started'));
};
process.on('SIGINT', interrupt).on('SIGTERM', interrupt);

const options = parseOptions(process.argv.slice(2), (code) => process.exit(code));
try {
  const report = await runBench(options, { progress, signal: interrupted.signal });
  if (options.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else process.stdout.write(`${reportTable(report.results)}\n\n${reportNotes(report)}\n`);
  process.exitCode = report.results.some(isBad) ? EXIT_FAILED : 0;
} catch (error) {
  process.exitCode = exitCodeOf(interrupted.signal.aborted ? interrupted.signal.reason : error);
}

/** Prints one sentence for an error that a person can fix, and the stack of any other error. */
function exitCodeOf(error: unknown): number {
  const known = [BenchError, StackError, OperationalError, ConfigError].some((kind) => error instanceof kind);
  console.error(known ? `bench: ${(error as Error).message}` : error);
  if (interrupted.signal.aborted) return EXIT_INTERRUPTED;
  return error instanceof ConfigError ? EXIT_USAGE : EXIT_FAILED;
}

/** Runs the chosen scenarios one after the other. No scenario runs after a failed check. */
function runBench(
  options: BenchOptions,
  io: { readonly progress: Progress; readonly signal: AbortSignal },
): Promise<Report> {
  const loadAverageBefore = loadavg()[0] ?? 0;
  return withSession(options, io, async (session) => {
    const startedAt = new Date().toISOString();
    const seconds = warmUpSeconds({ session, options });
    const buyers = new BuyerPool(
      await prepareBuyers(session.dir, {
        secret: session.stack.env().JWT_SECRET,
        count: buyersNeeded(options, seconds),
        ...io,
      }),
    );
    const context: Context = { session, options, buyers };
    const machine = await describeMachine(session);
    await warmUp(context, seconds);
    const results: ScenarioResult[] = [];
    for (const scenario of options.scenarios) {
      const result = await runScenario(scenario, context);
      results.push(result);
      if (isBad(result)) break; // the data of a failed check is kept
      await session.stores.empty();
    }
    return {
      startedAt,
      machine,
      loadAverageBefore,
      results,
      warmUpSeconds: seconds,
      commit: commitOf('.'),
      goals: judgeGoals(results),
    };
  });
}

function runScenario(scenario: ScenarioName, context: Context): Promise<ScenarioResult> {
  switch (scenario) {
    case 'win':
      return win(context);
    case 'no-group-commit':
      return noGroupCommit(context);
    case 'sold-out':
      return soldOut(context);
    case 'flash':
      return flash(context);
    case 'limits':
      return limits(context);
    case 'crowd':
      return crowd(context);
    case 'paired':
      return paired(context);
    case 'fleet':
      return fleet(context);
    case 'memory':
      return memory(context);
    default:
      return assertNever(scenario);
  }
}

/** Returns the number of buyers for the largest load. Every load uses the same buyers, on a sale of its own. */
function buyersNeeded(options: BenchOptions, warmUpFor: number): number {
  const { win: winRate, single, soldOut: soldOutRate } = BUYERS_PER_SECOND;
  const ofScenario: Record<ScenarioName, number> = {
    win: secondsOf({ options }, 'win') * winRate,
    'no-group-commit': Math.max(4, secondsOf({ options }, 'no-group-commit')) * single,
    'sold-out': (secondsOf({ options }, 'sold-out') + 4) * soldOutRate,
    flash: secondsOf({ options }, 'flash') * flashRateOf({ options }),
    limits: secondsOf({ options }, 'limits') * soldOutRate,
    crowd: 1,
    paired: Math.max(WARM_UP_SLICE_SECONDS, secondsOf({ options }, 'paired')) * winRate,
    fleet: secondsOf({ options }, 'fleet') * winRate,
    memory: secondsOf({ options }, 'memory') * winRate,
  };
  const warmUpRound = Math.min(warmUpFor, WARM_UP_ROUND_SECONDS);
  return Math.max(warmUpRound * winRate, ...options.scenarios.map((scenario) => ofScenario[scenario]));
}
