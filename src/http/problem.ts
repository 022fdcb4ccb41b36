import type { FieldError } from '../core/field-errors.js';
import { PROBLEMS, type Problem, type ProblemCode } from '../contract/problem.js';

/** What one occasion adds to its row. */
export interface ProblemParts {
  readonly requestId?: string | null;
  readonly detail?: string;
  readonly errors?: readonly FieldError[];
  /** When this very request may do better, in ms; what the table says when left out. */
  readonly retryAfterMs?: number;
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
    ...(parts.errors ? { errors: parts.errors } : {}),
  };
}

/** Keeps a browser from guessing another type than the one that an answer names. Every answer carries it. */
export const NOSNIFF = ['X-Content-Type-Options', 'nosniff'] as const;

/** Headers of a problem as a flat list of names and values, without Content-Length. No cache may keep one: a 404 would hide what comes later. */
export function problemHeaders(code: ProblemCode, parts: ProblemParts = {}): string[] {
  const retryAfterMs = retryAfterMsOf(code, parts);
  // Retry-After counts whole seconds; rounding up never sends a client back too soon.
  const retry = retryAfterMs === null ? [] : ['Retry-After', String(Math.ceil(retryAfterMs / 1000))];
  return ['Content-Type', PROBLEM_TYPE, 'Cache-Control', 'no-store', ...NOSNIFF, ...retry];
}

const retryAfterMsOf = (code: ProblemCode, parts: ProblemParts): number | null =>
  parts.retryAfterMs ?? PROBLEMS[code].retryAfterMs;
