const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 } as const;

/** Reads `90s`, `10m`, `2h` or `1d`. @returns ms, or null */
export function readDuration(text: string): number | null {
  const [, amount, unit] = /^([0-9]{1,6})([smhd])$/.exec(text) ?? [];
  return amount === undefined ? null : Number(amount) * UNITS_MS[unit as keyof typeof UNITS_MS];
}

/** Formats a duration in the largest unit that gives a whole number. `readDuration` reads it. */
export function durationText(ms: number): string {
  for (const [unit, unitMs] of Object.entries(UNITS_MS)) {
    if (ms >= unitMs && ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  }
  return `${Math.ceil(ms / 1000)}s`;
}

export const durationTextOrNull = (ms: number | null): string | null => (ms === null ? null : durationText(ms));
