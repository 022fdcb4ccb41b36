import assert from 'node:assert/strict';

// Assertions of scenarios, with errors that say what was compared.

/** @throws AssertionError unless `actual` is deeply equal */
export function expectEqual<T>(actual: T, expected: T, what: string): void {
  assert.deepEqual(actual, expected, `${what}: expected ${show(expected)}, found ${show(actual)}`);
}

/** @throws AssertionError unless `actual` has these fields with these values */
export function expectFields<T extends object>(actual: T, expected: Partial<T>, what: string): void {
  const part = Object.fromEntries(Object.keys(expected).map((key) => [key, actual[key as keyof T]]));
  assert.deepEqual(part, expected, `${what}: expected ${show(expected)}, found ${show(part)}`);
}

export function expectAtLeast(actual: number, least: number, what: string): void {
  assert.ok(actual >= least, `${what}: expected at least ${least}, found ${actual}`);
}

export function expectAtMost(actual: number, most: number, what: string): void {
  assert.ok(actual <= most, `${what}: expected at most ${most}, found ${actual}`);
}

export function expectBelow(actual: number, limit: number, what: string): void {
  assert.ok(actual < limit, `${what}: expected less than ${limit}, found ${actual}`);
}

export function expectOneOf<T>(actual: T, allowed: readonly T[], what: string): void {
  assert.ok(allowed.includes(actual), `${what}: expected one of ${show(allowed)}, found ${show(actual)}`);
}

export function expectTrue(actual: boolean, what: string): void {
  assert.ok(actual, what);
}

const SHOWN_MAX = 500;

function show(value: unknown): string {
  const text = JSON.stringify(value instanceof Map ? [...value] : value) ?? String(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)} …` : text;
}
