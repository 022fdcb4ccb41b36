import type { Section } from '../core/config/schema.js';
import type { Log } from '../core/ports/log.js';
import type { ConnectionOptions } from '../rocketmq/client-options.js';

/** How every client of the broker is reached and started. */
export function brokerConnection(rocketmq: Section<'rocketmq'>, log: Log): ConnectionOptions {
  const { endpoint, route, requestTimeoutMs, startTimeoutMs } = rocketmq;
  const start = { startupTimeoutMs: startTimeoutMs };
  return { endpoint, pinEndpoint: route === 'endpoint', requestTimeoutMs, log, start };
}
