export { readBreakers } from './breakers-route.js';
export { ruleJobs } from './canary.js';
export { roomRoutes } from './room-routes.js';
export { ruleRoutes } from './routes.js';
export { openRules, type RuleServices } from './services.js';
export { switchRoutes } from './switch-routes.js';
