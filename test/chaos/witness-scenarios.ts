import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { loadConfig } from '../../src/core/config/load.js';
import { keepRunning } from '../../src/core/job.js';
import { readMysqlClock } from '../../src/mysql/read-facts.js';
import { createWitnessStore, type WitnessFinding } from '../../src/mysql/witness-store.js';
import { openWitnessJob, WITNESS_EVERY_MS } from '../../src/operate/witness/jobs.js';
import { systemClock as clock } from '../../src/process/system-clock.js';
import { silentLog as log } from '../helpers/silent-log.js';
import type { StackControls } from './harness/stack-controls.js';

const METRICS = { jobBegan: () => () => undefined, jobRan: () => undefined };
const FINDINGS_MAX = 1000;

/**
 * Follows the binary log until the signal aborts, whenever no keeper of the scenarios does.
 * @returns reads to the end of the log, and returns each change that no program makes. Null: `WITNESS` is off
 */
export function witnessScenarios(
  { mysql, env }: StackControls,
  signal: AbortSignal,
): (() => Promise<readonly WitnessFinding[]>) | null {
  const config = loadConfig(['keeper', 'mysql'], { ...process.env, ...env });
  const job = openWitnessJob(config, { mysql, registry: new Registry(), clock, log });
  if (job === null) return null;
  void keepRunning(job, WITNESS_EVERY_MS, signal, { clock, log, metrics: METRICS }).finally(() => job.close());
  const store = createWitnessStore(mysql);
  return async () => {
    const endMs = await readMysqlClock(mysql);
    while (((await store.position())?.readToMs ?? 0) <= endMs) await sleep(WITNESS_EVERY_MS, undefined, { signal });
    return store.list({}, { max: FINDINGS_MAX });
  };
}
