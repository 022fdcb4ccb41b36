import { modeFor } from '../../admission/layer.js';
import { sumOf, waitingIn } from '../../admission/queue/waiting-rooms.js';
import type { WaitingRoom } from '../../contract/rules.js';
import type { AuditLog } from '../../core/ports/audit-log.js';
import type { LineStore } from '../../core/ports/line-store.js';
import { changeRules, type Accepted } from './change-rules.js';
import type { RuleAdmin, Unfit } from './rule-admin.js';

/** Maximum number of buyers that an operator admits at once. */
export const ADMIT_MAX = 1_000_000;

export type RateAnswer =
  | (Accepted & { readonly outcome: 'rate_set' })
  | { readonly outcome: 'version_conflict'; readonly version: number }
  | Unfit;

export type FoundRoom = WaitingRoom & { readonly outcome: 'found' };

export type Steered = Awaited<ReturnType<LineStore['steer']>>;

interface RoomLines {
  readonly look: LineStore['look'];
  readonly steer: LineStore['steer'];
}

export class RoomAdmin {
  readonly #rules: RuleAdmin;
  readonly #audit: AuditLog['append'];
  readonly #lines: RoomLines;

  constructor(rules: RuleAdmin, audit: AuditLog['append'], lines: RoomLines) {
    this.#rules = rules;
    this.#audit = audit;
    this.#lines = lines;
  }

  /** @throws OperationalError mysql, redis */
  async show(saleId: string): Promise<FoundRoom | Unfit> {
    const read = await this.#rules.read();
    if ('outcome' in read) return read;
    const { version, rules } = read;
    const { admitPerSecond } = rules.queue;
    const line = await this.#lines.look(saleId);
    const waiting = waitingIn(line);
    const estimateMs = admitPerSecond > 0 ? Math.ceil((waiting * 1000) / admitPerSecond) : waiting > 0 ? null : 0;
    const admitted = line === null ? 0 : sumOf(line.admitted);
    return {
      ...{ outcome: 'found', version, mode: modeFor(rules.queue, saleId), admitPerSecond },
      ...{ waiting, admitted, estimateMs },
    };
  }

  /** Sets the rate of all waiting rooms. @param admitPerSecond 0 pauses. @throws OperationalError mysql; may be set */
  async setRate(admitPerSecond: number, actor: string): Promise<RateAnswer> {
    const answer = await changeRules(
      this.#rules,
      (rules) => ({ ...rules, queue: { ...rules.queue, admitPerSecond } }),
      actor,
    );
    if (answer.outcome !== 'changed') return answer;
    const { rules: _, ...accepted } = answer;
    return { ...accepted, outcome: 'rate_set' };
  }

  /** Admits buyers or ends all places, after an audit entry. @throws OperationalError mysql (not done) or redis */
  async steer(saleId: string, admit: number | 'all_out', actor: string): Promise<Steered> {
    const line = await this.#lines.look(saleId);
    if (line === null) return { word: 'no_room', buyers: 0 };
    if (admit !== 'all_out' && !line.opened) return { word: 'not_open', buyers: 0 };
    const [action, after] = admit === 'all_out' ? ['room.emptied', {}] : ['room.admitted', { buyers: admit }];
    await this.#audit({ actor, action, subject: `sale:${saleId}`, before: null, after });
    return this.#lines.steer(saleId, admit);
  }
}
