export { brokerJobs } from './jobs.js';
export { brokerRoutes } from './routes.js';
export { openBroker, type BrokerServices } from './services.js';
