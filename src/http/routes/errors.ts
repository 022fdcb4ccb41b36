import type { ErrorRequestHandler } from 'express';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { OperationalError } from '../../core/errors.js';
import type { Replies } from '../respond.js';
import type { HttpServices } from '../services.js';

interface Asked {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly replies: Replies;
}

/** The end of every error: a fault of a dependency is 503 with its name, a bad address 400, the rest is a bug. */
export function answerError(
  error: unknown,
  { req, res, replies }: Asked,
  services: Pick<HttpServices, 'log' | 'onBug'>,
): void {
  if (error instanceof OperationalError) {
    return replies.problem(req, res, 'unavailable', { detail: `${error.dependency} does not answer. Try again.` });
  }
  if (statusOf(error) === 400) return replies.problem(req, res, 'bad_request'); // Express could not decode the address
  replies.problem(req, res, 'internal');
  services.log.error({ error }, 'a request failed in a way nobody foresaw');
  services.onBug(error);
}

/** For what never reached a handler, such as an address with a broken percent sign. */
export function createErrorHandler(services: HttpServices, replies: Replies): ErrorRequestHandler {
  // Express knows an error handler by its four parameters.
  return (error: unknown, req, res, _next) => answerError(error, { req, res, replies }, services);
}

function statusOf(error: unknown): number {
  const status = typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined;
  return typeof status === 'number' ? status : 500;
}
