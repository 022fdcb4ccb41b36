import type { IncomingMessage } from 'node:http';
import type { Endpoint } from '../admission/endpoint.js';
import type { Visit } from '../admission/visit.js';
import type { HttpServices } from './services.js';

/** A request as the layers of the entry see it. */
export const visitOf = (
  req: IncomingMessage,
  endpoint: Endpoint,
  { addressOf }: Pick<HttpServices, 'addressOf'>,
): Visit => ({ endpoint, address: addressOf(req), agent: req.headers['user-agent'] ?? '' });
