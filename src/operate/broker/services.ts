import type { Config } from '../../core/config/schema.js';
import type { AuditLog } from '../../core/ports/audit-log.js';
import { systemClock } from '../../process/system-clock.js';
import { SeenBrokers } from '../../rocketmq/admin/broker-state.js';
import { createTraceBroker, type TraceBroker } from '../../rocketmq/admin/trace-broker.js';
import { brokerAccessOf } from '../../rocketmq/credentials.js';
import { BrokerViews } from './broker-views.js';
import { RocketmqInspection } from './rocketmq-inspection.js';

export interface BrokerServices {
  /** Null if no name server is configured. */
  readonly mq: BrokerViews | null;
  readonly audit: AuditLog;
}

/** Opens access to the admin ports of the brokers. Null if NAMESRV_ADDR is not set. */
export function openBroker({ repair: { namesrv }, brokerAccess }: Config<'repair' | 'brokerAccess'>): {
  readonly brokerViews: BrokerViews | null;
  readonly traceBroker: TraceBroker | null;
} {
  if (namesrv === '') return { brokerViews: null, traceBroker: null };
  const access = brokerAccessOf(brokerAccess);
  const seen = new SeenBrokers(); // each read has its own inspection
  return {
    brokerViews: new BrokerViews((onDown) => new RocketmqInspection(namesrv, access, { onDown, seen }), systemClock),
    traceBroker: createTraceBroker(namesrv, access, { seen }),
  };
}
