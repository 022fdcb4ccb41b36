import { testScenarios } from '../helpers/test-scenarios.js';
import { CORE_SCENARIOS, SCENARIOS } from '../chaos/scenarios/list.js';

describe('the fault matrix', () => testScenarios(SCENARIOS.filter(({ name }) => CORE_SCENARIOS.includes(name))));
