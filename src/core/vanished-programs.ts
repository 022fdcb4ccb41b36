import type { ProgramKind } from './ports/program-reports.js';

/** A process that reported at least once and did not withdraw its report. Times are Unix ms on its own clock. */
export interface SeenProgram {
  readonly kind: ProgramKind;
  /** `host:pid`, for people. */
  readonly id: string;
  readonly startedAtMs: number;
  readonly seenAtMs: number;
}

/** How long a vanished process is remembered. It may have been removed on purpose. */
export const VANISHED_NAMED_MS = 3_600_000;

/**
 * Returns the vanished processes that were not replaced. A process replaces one of its kind that vanished before it
 * started.
 * @param gone processes without a live report
 * @param live processes with a live report
 */
export function vanishedPrograms<P extends SeenProgram>(gone: readonly P[], live: readonly P[], nowMs: number): P[] {
  const successors = [...gone, ...live].sort((one, other) => one.startedAtMs - other.startedAtMs);
  const vanished: P[] = [];
  for (const program of [...gone].sort((one, other) => one.seenAtMs - other.seenAtMs)) {
    const next = successors.findIndex(
      ({ kind, startedAtMs }) => kind === program.kind && startedAtMs > program.seenAtMs,
    );
    if (next >= 0) successors.splice(next, 1);
    else if (nowMs - program.seenAtMs < VANISHED_NAMED_MS) vanished.push(program);
  }
  return vanished;
}
