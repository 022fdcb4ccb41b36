import type { ServerName } from './servers/server-spec.js';

/** `artifacts` downloads the programs, `topics` creates topics and groups, and the other steps are servers. */
export type StackStep = 'artifacts' | ServerName | 'topics';

/** An event of `up` or `down`. A step begins, may report progress, and ends as `done`, `skipped` or `failed`. */
export interface StackProgress {
  readonly step: StackStep;
  readonly state: 'begun' | 'working' | 'done' | 'skipped' | 'failed';
  /** A short text for people. */
  readonly text: string;
  /** Time since the step began. */
  readonly elapsedMs: number;
}

export type OnProgress = (progress: StackProgress) => void;

export interface StepReporter {
  /** Reports the current work of a running step. */
  report(text: string): void;
}

/** Runs one step and reports its start and its end. Its last text is the result of `work`. */
export async function runStep(
  step: StackStep,
  begin: string,
  onProgress: OnProgress,
  work: (reporter: StepReporter) => Promise<string | { skipped: string }>,
): Promise<void> {
  const begunAtMs = performance.now();
  const report = (state: StackProgress['state'], text: string): void =>
    onProgress({ step, state, text, elapsedMs: Math.round(performance.now() - begunAtMs) });
  report('begun', begin);
  try {
    const result = await work({ report: (text) => report('working', text) });
    if (typeof result === 'string') report('done', result);
    else report('skipped', result.skipped);
  } catch (error) {
    report('failed', error instanceof Error ? error.message : String(error));
    throw error;
  }
}
