export { readBreakers } from './breakers-route.js';
export { ruleRoutes } from './routes.js';
export { openRules, type RuleServices } from './services.js';
export { switchRoutes } from './switch-routes.js';
