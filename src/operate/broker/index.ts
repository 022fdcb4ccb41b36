import type { Route } from '../../http/route.js';
import {
  listDiscardedHalves,
  listHalves,
  listMessages,
  listMqConsumers,
  listMqGroups,
  listMqProducers,
  listMqTopics,
  readMqStatus,
  resumeHalves,
} from './routes.js';
import type { BrokerServices } from './services.js';

export const brokerRoutes: readonly Route<BrokerServices>[] = [
  readMqStatus,
  listMqGroups,
  listMqTopics,
  listHalves,
  listDiscardedHalves,
  resumeHalves,
  listMqProducers,
  listMqConsumers,
  listMessages,
];
export { brokerJobs } from './jobs.js';
export { openBroker, type BrokerServices } from './services.js';
