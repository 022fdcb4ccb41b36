import type { FieldError } from './types.js';

/** What the api answered instead, or that it did not answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** 0: no answer came. */
  readonly status: number;
  /** The word of the problem; `unreachable`: no answer came, `no_problem`: one that is not of our api. */
  readonly code: string;
  readonly errors: readonly FieldError[];

  constructor(status: number, code: string, detail: string, errors: readonly FieldError[] = []) {
    super(detail);
    this.status = status;
    this.code = code;
    this.errors = errors;
  }
}

/** What is no answer of the api and no word of it: nobody knows what came of the request. */
export const apiErrorOf = (error: unknown): ApiError =>
  error instanceof ApiError ? error : new ApiError(0, 'unreachable', String(error));
