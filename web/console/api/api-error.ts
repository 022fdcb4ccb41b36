import type { FieldError } from './types.js';

/** The problem that the API returned, or the lack of an answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** 0 if no answer came. */
  readonly status: number;
  /** Code of the problem. `unreachable`: no answer came. `no_problem`: the answer is not from our API. */
  readonly code: string;
  readonly errors: readonly FieldError[];

  constructor(status: number, code: string, detail: string, errors: readonly FieldError[] = []) {
    super(detail);
    this.status = status;
    this.code = code;
    this.errors = errors;
  }
}

/** Wraps any error. An error that is not an answer of the API leaves the outcome of the request unknown. */
export const apiErrorOf = (error: unknown): ApiError =>
  error instanceof ApiError ? error : new ApiError(0, 'unreachable', String(error));
