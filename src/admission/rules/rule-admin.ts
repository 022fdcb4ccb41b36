import { OperationalError } from '../../core/errors.js';
import type { Log } from '../../core/ports/log.js';
import type { RuleBroadcast, RuleChange, RuleRepository, StoredRules } from '../../core/ports/rules.js';
import { parseRules, type Fitness, type RuleReason } from './rule-set.js';

export interface RuleAdminPorts {
  readonly store: RuleRepository;
  readonly board: Pick<RuleBroadcast, 'post'>;
  readonly log: Log;
  /** Of the process of this desk, which stands for all. Left out: nobody here knows what the apis can do. */
  readonly unfit?: Fitness;
}

/**
 * What became of new rules.
 * - `published`: stored. `seenAtOnce`: Redis shows them, so they are in force everywhere within a second; else every
 *   process finds them in MySQL, within ten seconds
 * - `invalid`: nothing was changed, and this is why
 * - `version_conflict`: somebody else published meanwhile; look at that version first
 */
export type PublishAnswer =
  | { readonly outcome: 'published'; readonly version: number; readonly seenAtOnce: boolean }
  | { readonly outcome: 'invalid'; readonly reasons: readonly RuleReason[] }
  | { readonly outcome: 'version_conflict'; readonly version: number };

/** What operators do with the rules of the entry. */
export class RuleAdmin {
  readonly #ports: RuleAdminPorts;

  constructor(ports: RuleAdminPorts) {
    this.#ports = ports;
  }

  /** The newest rules, with every default filled in. @throws OperationalError mysql */
  async show(): Promise<StoredRules> {
    return completed(await this.#ports.store.current());
  }

  /** As they were stored; null: there is no such version. @throws OperationalError mysql */
  find(version: number): Promise<StoredRules | null> {
    return this.#ports.store.find(version);
  }

  /** What speaks against these rules; nothing, when the list is empty. Changes nothing. */
  check(rules: unknown): readonly RuleReason[] {
    const parsed = parseRules(rules, this.#ports.unfit);
    return 'reasons' in parsed ? parsed.reasons : [];
  }

  /**
   * @param version that the new rules were made from
   * @throws OperationalError mysql; they may be stored all the same, which `show` tells
   */
  async publish(rules: unknown, version: number, actor: string): Promise<PublishAnswer> {
    const parsed = parseRules(rules, this.#ports.unfit);
    if ('reasons' in parsed) return { outcome: 'invalid', reasons: parsed.reasons };
    const stored = await this.#ports.store.store(parsed.rules, version, actor);
    if (stored.outcome === 'version_conflict') return stored;
    const seenAtOnce = await this.#post({ version: stored.version, rules: parsed.rules });
    return { outcome: 'published', version: stored.version, seenAtOnce };
  }

  /** The newest changes first. @throws OperationalError mysql */
  history(max: number): Promise<RuleChange[]> {
    return this.#ports.store.history(max);
  }

  /** Stored is stored: a board that is away does not undo it. */
  async #post(stored: StoredRules): Promise<boolean> {
    try {
      await this.#ports.board.post(stored);
      return true;
    } catch (err) {
      if (!(err instanceof OperationalError)) throw err;
      this.#ports.log.warn({ err, version: stored.version }, 'new rules are stored, but Redis does not tell of them');
      return false;
    }
  }
}

/** Rules that an older or newer program wrote may not be fit here; then they are shown as they are. */
function completed({ version, rules }: StoredRules): StoredRules {
  const parsed = parseRules(rules);
  return { version, rules: 'rules' in parsed ? parsed.rules : rules };
}
