import type { AuditLog } from '../../core/ports/audit-log.js';
import type { LineStore } from '../../core/ports/line-store.js';
import { changeRules, type Unfit } from './change-rules.js';
import type { RuleAdmin } from './rule-admin.js';

/** The most buyers that an operator admits in one go. */
export const ADMIT_MAX = 1_000_000;

export type RateAnswer =
  | { readonly outcome: 'rate_set'; readonly version: number; readonly seenAtOnce: boolean }
  | { readonly outcome: 'version_conflict'; readonly version: number }
  | Unfit;

export type Steered = Awaited<ReturnType<LineStore['steer']>>;

/** Slows down, pauses, fills and empties waiting rooms. */
export class RoomAdmin {
  readonly #rules: RuleAdmin;
  readonly #audit: AuditLog['append'];
  readonly #steer: LineStore['steer'];

  constructor(rules: RuleAdmin, audit: AuditLog['append'], steer: LineStore['steer']) {
    this.#rules = rules;
    this.#audit = audit;
    this.#steer = steer;
  }

  /**
   * Sets the rate of all waiting rooms, in a new version of the rules.
   * @param admitPerSecond 0 pauses
   * @throws OperationalError mysql; the rate may be set all the same
   */
  async setRate(admitPerSecond: number, actor: string): Promise<RateAnswer> {
    const answer = await changeRules(
      this.#rules,
      (rules) => ({ ...rules, queue: { ...rules.queue, admitPerSecond } }),
      actor,
    );
    if (answer.outcome !== 'changed') return answer;
    return { outcome: 'rate_set', version: answer.version, seenAtOnce: answer.seenAtOnce };
  }

  /**
   * Admits buyers besides the rate, or ends all places. The audit log states the request before it is done.
   * @throws OperationalError mysql; nothing was done
   * @throws OperationalError redis; it may be done all the same
   */
  async steer(saleId: string, admit: number | 'all_out', actor: string): Promise<Steered> {
    const [action, after] = admit === 'all_out' ? ['room.emptied', {}] : ['room.admitted', { buyers: admit }];
    await this.#audit({ actor, action, subject: `sale:${saleId}`, before: null, after });
    return this.#steer(saleId, admit);
  }
}
