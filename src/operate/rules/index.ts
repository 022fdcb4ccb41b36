import type { Route } from '../../http/route.js';
import { checkRules, listRules, publishRules, readOldRules, readRules, readRulesStatus } from './routes.js';
import type { RuleServices } from './services.js';

export const ruleRoutes: readonly Route<RuleServices>[] = [
  readRules,
  readRulesStatus,
  publishRules,
  checkRules,
  listRules,
  readOldRules,
];
export { readBreakers } from './breakers-route.js';
export { openRules, type RuleServices } from './services.js';
export { switchRoutes } from './switch-routes.js';
