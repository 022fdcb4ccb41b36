import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { assertNever } from '../src/core/errors.js';
import { CAPTURED } from './attack/attackers.js';
import { BuyerPool, prepareBuyers } from './load/buyers.js';
import { chooseGenerator } from './load/choose.js';
import type { BenchOptions, ScenarioName } from './options.js';
import { judgeGoals } from './report/goals.js';
import type { Report } from './report/report.js';
import { isBad, type ScenarioResult } from './results.js';
import { BUYERS_PER_SECOND, dueRateOf, secondsOf, type Context } from './scenarios/context.js';
import { attack } from './scenarios/attack.js';
import { buckets } from './scenarios/buckets.js';
import { flash } from './scenarios/flash.js';
import { layers } from './scenarios/layers.js';
import { limits } from './scenarios/limits.js';
import { memory } from './scenarios/memory.js';
import { noGroupCommit } from './scenarios/no-group-commit.js';
import { paired, WARM_UP_SLICE_SECONDS } from './scenarios/paired.js';
import { soldOut } from './scenarios/sold-out.js';
import { warmUp, warmUpSeconds, WARM_UP_ROUND_SECONDS } from './scenarios/warm-up.js';
import { win } from './scenarios/win.js';
import { describeMachine } from './session/machine.js';
import { withSession, type Say } from './session/session.js';

/** Runs the scenarios that were asked for, one after the other; the first one whose books are wrong is the last. */
export function runBench(
  options: BenchOptions,
  io: { readonly say: Say; readonly signal: AbortSignal },
): Promise<Report> {
  const loadAverageBefore = loadavg()[0] ?? 0;
  const generator = chooseGenerator(options.generator); // before minutes are spent on a start
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
    const context: Context = { session, options, buyers, generator };
    const machine = await describeMachine(session);
    await warmUp(context, seconds);
    const results: ScenarioResult[] = [];
    for (const scenario of options.scenarios) {
      const result = await runScenario(scenario, context);
      results.push(result);
      if (isBad(result)) break; // the data stays for whoever wants to know why
      await session.books.empty();
    }
    return {
      startedAt,
      machine,
      loadAverageBefore,
      results,
      warmUpSeconds: seconds,
      commit: commitOf(),
      loadGenerator: generator.name,
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
    case 'attack':
      return attack(context);
    case 'layers':
      return layers(context);
    case 'paired':
      return paired(context);
    case 'buckets':
      return buckets(context);
    case 'memory':
      return memory(context);
    default:
      return assertNever(scenario);
  }
}

/** The hungriest load decides; each takes its buyers anew, on a sale of its own. */
function buyersNeeded(options: BenchOptions, warmUpFor: number): number {
  const { win: winRate, single, soldOut: soldOutRate } = BUYERS_PER_SECOND;
  const ofScenario: Record<ScenarioName, number> = {
    win: secondsOf({ options }, 'win') * winRate,
    'no-group-commit': Math.max(4, secondsOf({ options }, 'no-group-commit')) * single,
    'sold-out': (secondsOf({ options }, 'sold-out') + 4) * soldOutRate,
    flash: secondsOf({ options }, 'flash') * dueRateOf({ options }, 'flash'),
    limits: secondsOf({ options }, 'limits') * soldOutRate,
    attack: secondsOf({ options }, 'attack') * dueRateOf({ options }, 'attack') + CAPTURED,
    layers: 0,
    paired: Math.max(WARM_UP_SLICE_SECONDS, secondsOf({ options }, 'paired')) * winRate,
    buckets: secondsOf({ options }, 'buckets') * winRate,
    memory: secondsOf({ options }, 'memory') * winRate,
  };
  const warmUpRound = Math.min(warmUpFor, WARM_UP_ROUND_SECONDS);
  return Math.max(warmUpRound * winRate, ...options.scenarios.map((scenario) => ofScenario[scenario]));
}

function commitOf(): string | null {
  const { stdout, status } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}
