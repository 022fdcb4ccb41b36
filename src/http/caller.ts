import type { IncomingMessage } from 'node:http';
import type { Endpoint, Caller } from '../admission/layer.js';
import type { HttpServices } from './services.js';

/** A request as the layers of the entry see it. */
export const callerOf = (
  req: IncomingMessage,
  endpoint: Endpoint,
  { addressOf }: Pick<HttpServices, 'addressOf'>,
): Caller => ({ endpoint, address: addressOf(req), agent: req.headers['user-agent'] ?? '' });
