import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../../src/core/config/load.js';
import type { Sale } from '../../src/core/sale.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { changeByHand } from './harness/change-by-hand.js';
import { PATIENT_ENV, SharedPrograms } from './harness/programs.js';
import type { StackControls } from './harness/stack-controls.js';
import { runScenario, type ScenarioResult } from './run-scenario.js';
import type { Scenario } from './scenario.js';

/** A check-back comes 10 to 15 s after a half message, and again if it gets no answer. */
const ALL_CHECKED_BACK_MS = 20_000;

interface ScheduledRun {
  readonly scenario: Scenario;
  readonly seed: number;
}

/** Combinations of scenario and seed that have not started yet. Several stacks may share a schedule. */
export class Schedule {
  readonly #alone: ScheduledRun[];
  readonly #beside: ScheduledRun[];

  constructor(scenarios: readonly Scenario[], seeds: readonly number[]) {
    const runs = seeds.flatMap((seed) => scenarios.map((scenario) => ({ scenario, seed })));
    this.#alone = runs.filter(({ scenario }) => scenario.alone);
    this.#beside = runs.filter(({ scenario }) => !scenario.alone);
  }

  take(kind: 'alone' | 'beside'): ScheduledRun | undefined {
    return (kind === 'alone' ? this.#alone : this.#beside).shift();
  }
}

export interface SuiteRunParts {
  readonly stack: StackControls;
  /** Environment of the programs: the environment of this process, with the addresses of the servers. */
  readonly env: Environment;
  /** Entry of another build. */
  readonly main?: string;
  /** Largest number of scenarios that run in parallel. */
  readonly jobs: number;
  readonly signal: AbortSignal;
  readonly onEnd?: (result: ScenarioResult) => void;
  readonly onLogs?: (text: string) => void;
}

/** Runs scenarios on one stack: first the parallel scenarios, then the others in sequence. */
export class SuiteRun {
  readonly #parts: SuiteRunParts;
  readonly #shared: SharedPrograms;
  /** Sales of green scenarios that are over. */
  #over: Sale[] = [];

  constructor(parts: SuiteRunParts) {
    const env = { ...PATIENT_ENV, ...parts.env };
    this.#parts = { ...parts, env };
    this.#shared = new SharedPrograms(env, parts.stack.servers.dir, parts.main);
  }

  /**
   * Runs the rest of the schedule.
   * @returns results in the order in which scenarios ended; after an abort, only of scenarios that had started
   */
  async run(schedule: Schedule): Promise<ScenarioResult[]> {
    const results: ScenarioResult[] = [];
    const lane = async (kind: 'alone' | 'beside'): Promise<void> => {
      while (!this.#parts.signal.aborted) {
        const next = schedule.take(kind);
        if (next === undefined) return;
        results.push(await this.runOne(next.scenario, next.seed));
      }
    };
    await Promise.all(Array.from({ length: this.#parts.jobs }, () => lane('beside')));
    await this.#untilCheckedBack();
    await this.endShared();
    await lane('alone');
    return results;
  }

  /** Runs one scenario once. A scenario that runs alone must not overlap with another one. */
  async runOne(scenario: Scenario, seed: number): Promise<ScenarioResult> {
    const { stack, env, main, signal, onEnd, onLogs = () => undefined } = this.#parts;
    if (scenario.alone) {
      await this.endShared();
      await this.#retireAll();
    }
    const result = await runScenario({
      scenario,
      seed,
      stack,
      env,
      main,
      logDir: join(stack.servers.dir, 'op-log'),
      healthyPrograms: () => this.#shared.healthyPrograms(),
      signal,
      onOver: async (sales, outcome) => {
        if (outcome === 'red') return hideFromKeepers(stack, sales).catch(() => undefined); // MySQL may be down
        this.#over.push(...sales);
        if (scenario.alone) await this.#retireAll();
      },
      onLogs,
    });
    if (!signal.aborted) onEnd?.(result);
    return result;
  }

  /** Ends the programs that scenarios share. */
  endShared(): Promise<void> {
    return this.#shared.close();
  }

  /**
   * Waits until the shared api has answered check-backs of half messages that scenarios left open. Once their sales are
   * retired, no api can answer, and the broker would ask for an hour.
   */
  async #untilCheckedBack(): Promise<void> {
    const { signal } = this.#parts;
    if (this.#over.length > 0) await sleep(ALL_CHECKED_BACK_MS, undefined, { signal }).catch(() => undefined);
  }

  #retireAll(): Promise<void> {
    return retireSales(this.#parts.stack, this.#over.splice(0));
  }
}

/**
 * Retires sales of finished scenarios once nothing writes their orders any more, and ends their unpaid orders.
 * Otherwise the next kill of Redis would wait until hundreds of sales are rebuilt, and orders would fall due in a
 * scenario whose keeper must die at its own expiry.
 */
async function retireSales(stack: StackControls, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return;
  const ids = [sales.map(({ saleId }) => saleId)];
  const { redis } = stack;
  await changeByHand(stack, [
    [
      // so long ago that no keeper asks Redis about the sale
      "UPDATE sales SET state = 'closed', opens_at = NOW(3) - INTERVAL 10 DAY, closes_at = NOW(3) - INTERVAL 9 DAY" +
        ' WHERE id IN (?)',
      ids,
    ],
    ["UPDATE orders SET state = 'expired' WHERE state = 'pending_payment' AND sale_id IN (?)", ids],
  ]);
  for (const { saleId, buckets } of sales) {
    for (let bucket = 0; bucket < buckets; bucket++) {
      const { stock, sale, buyers, requests, pending, transfers } = bucketKeys({ saleId, bucket });
      await redis.redis.unlink(stock, sale, buyers, requests, pending, transfers);
    }
  }
}

/**
 * Prevents keepers from repairing these sales, so that Redis keeps its data for a person to examine. Closing the sales
 * is not enough: a closed sale that Redis knows is still repaired after each loss.
 */
async function hideFromKeepers(stack: StackControls, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return;
  const ids = sales.map(({ saleId }) => saleId);
  await changeByHand(stack, [["UPDATE sales SET state = 'draft' WHERE id IN (?)", [ids]]]);
}
