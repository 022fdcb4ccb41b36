import type { Fitness } from '../../admission/rules/rule-set.js';
import { OperationalError } from '../../core/errors.js';
import { createRuleRepository } from '../../mysql/rule-repository.js';
import type { Connections } from '../../process/connections.js';
import { createRuleBroadcast } from '../../redis/rule-broadcast.js';
import { createRuleReports } from '../../redis/rule-reports.js';
import { createAuditLog } from '../../mysql/audit-log.js';
import { createLineStore } from '../../redis/line-store.js';
import { RoomAdmin } from './room-admin.js';
import { RuleAdmin } from './rule-admin.js';
import { SwitchAdmin } from './switches.js';
import type { LiveReports } from './where-in-force.js';

export interface RuleServices {
  /** @throws OperationalError mysql */
  readonly rules: RuleAdmin;
  /** @throws OperationalError redis */
  readonly ruleReports: LiveReports;
  /** @throws OperationalError mysql */
  readonly switches: SwitchAdmin;
  /** @throws OperationalError mysql, redis */
  readonly room: RoomAdmin;
}

/** Works while Redis is down: a change may matter most then. @param unfit absent in commands, which have no secrets */
export async function openRules(connections: Connections<'mysql' | 'redis'>, unfit?: Fitness): Promise<RuleServices> {
  const { announce, live } = await connections.redis().then(
    (redis) => ({ ...createRuleBroadcast(redis), ...createRuleReports(redis) }),
    (error: unknown) => {
      if (!(error instanceof OperationalError)) throw error;
      const refuse = (): Promise<never> => Promise.reject(error);
      return { announce: refuse, live: refuse };
    },
  );
  const repository = createRuleRepository(connections.mysql());
  const rules = new RuleAdmin({ repository, broadcast: { announce }, log: connections.log, unfit });
  const lines = async () => createLineStore(await connections.redis());
  const room = new RoomAdmin(rules, createAuditLog(connections.mysql()).append, {
    look: async (saleId) => (await lines()).look(saleId),
    steer: async (saleId, admit) => (await lines()).steer(saleId, admit),
  });
  return { rules, ruleReports: { live }, switches: new SwitchAdmin(rules), room };
}
