import type { FieldError } from '../core/field-errors.js';
import { isoTime } from '../contract/fields.js';
import { PROBLEMS, type Problem, type ProblemCode } from '../contract/problem.js';

/** The values that a single occurrence adds to the row of its problem in the table. */
export interface ProblemParts {
  readonly requestId?: string | null;
  readonly detail?: string;
  readonly errors?: readonly FieldError[];
  /** When a retry of this request may succeed, in ms. Default: the value in the problem table. */
  readonly retryAfterMs?: number;
  /** When the sale opens, Unix ms. */
  readonly opensAtMs?: number;
}

export const PROBLEM_TYPE = 'application/problem+json';

export function problemOf(code: ProblemCode, parts: ProblemParts = {}): Problem {
  const { status, title, detail } = PROBLEMS[code];
  const retryAfterMs = retryAfterMsOf(code, parts);
  return {
    type: `urn:seckill:problem:${code}`,
    title,
    status,
    detail: parts.detail ?? detail,
    code,
    requestId: parts.requestId ?? null,
    retryable: retryAfterMs !== null,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
    ...(parts.opensAtMs === undefined ? {} : { opensAt: isoTime(parts.opensAtMs) }),
    ...(parts.errors ? { errors: parts.errors } : {}),
  };
}

/** Stops a browser from guessing a type other than the declared one. Every answer carries it. */
export const NOSNIFF = ['X-Content-Type-Options', 'nosniff'] as const;

/**
 * Returns the headers of a problem as a flat list of names and values, without Content-Length. No cache may keep a problem:
 * a stored 404 would hide a later success.
 */
export function problemHeaders(code: ProblemCode, parts: ProblemParts = {}): string[] {
  const retryAfterMs = retryAfterMsOf(code, parts);
  // Retry-After counts whole seconds; rounding up never sends a client back too soon.
  const retry = retryAfterMs === null ? [] : ['Retry-After', String(Math.ceil(retryAfterMs / 1000))];
  return ['Content-Type', PROBLEM_TYPE, 'Cache-Control', 'no-store', ...NOSNIFF, ...retry];
}

const retryAfterMsOf = (code: ProblemCode, parts: ProblemParts): number | null =>
  parts.retryAfterMs ?? PROBLEMS[code].retryAfterMs;
