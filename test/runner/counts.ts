/** Test counts of a file, a command or a whole run. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const sumOf = (some: readonly Counts[]): Counts => {
  const sum = (key: keyof Counts): number => some.reduce((total, one) => total + one[key], 0);
  return { passed: sum('passed'), failed: sum('failed'), skipped: sum('skipped') };
};

export const shown = ({ passed, failed, skipped }: Counts): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;

/** Returns the last line of the form `N passed, N failed`, or null if a program printed none. */
export function countsIn(output: string): Counts | null {
  const last = [...output.matchAll(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm)].at(-1);
  if (last === undefined) return null;
  const [, passed, failed, skipped = '0'] = last;
  return { passed: Number(passed), failed: Number(failed), skipped: Number(skipped) };
}

/** Returns the line that a run prints for each command at its end. */
export const commandLine = (name: string, tookMs: number, figures: string): string =>
  `${name.padEnd(10)} ${String(Math.round(tookMs / 1000)).padStart(5)} s  ${figures}`;

export const commandLinesIn = (output: string): readonly string[] =>
  output.match(/^\w+ +\d+ s {2}\d+ passed.*$/gm) ?? [];
