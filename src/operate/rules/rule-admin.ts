import { OperationalError } from '../../core/errors.js';
import type { Log } from '../../core/ports/log.js';
import type { RuleBroadcast, RuleChange, RuleRepository, StoredRules } from '../../core/ports/rules.js';
import { parseRules, storedRules, type Fitness, type RuleReason } from '../../admission/rules/rule-set.js';

interface RuleAdminParts {
  readonly repository: RuleRepository;
  readonly broadcast: Pick<RuleBroadcast, 'announce'>;
  readonly log: Log;
  /** Checks rules for all apis as this process would. Unknown here if omitted. */
  readonly unfit?: Fitness | undefined;
}

/**
 * The result of publishing rules.
 * - `published`: stored. If `seenAtOnce`, Redis announces the rules and every api follows them within a second.
 *   Otherwise each api finds them in MySQL within ten seconds
 * - `invalid`: nothing was changed; the reasons say why
 * - `version_conflict`: other rules were published in the meantime; read that version first
 */
export type PublishAnswer =
  | { readonly outcome: 'published'; readonly version: number; readonly seenAtOnce: boolean }
  | { readonly outcome: 'invalid'; readonly reasons: readonly RuleReason[] }
  | { readonly outcome: 'version_conflict'; readonly version: number };

/** Shows, checks and publishes the rules of admission. */
export class RuleAdmin {
  readonly #parts: RuleAdminParts;

  constructor(parts: RuleAdminParts) {
    this.#parts = parts;
  }

  /**
   * Returns the newest rules, with every default filled in.
   * @throws OperationalError mysql
   */
  async show(): Promise<StoredRules> {
    const { version, rules } = await this.#parts.repository.current();
    const parsed = parseRules(rules);
    // Rules of an older or newer program may be unreadable here. They are shown unchanged.
    return { version, rules: 'rules' in parsed ? parsed.rules : rules };
  }

  /**
   * Returns a version as it was stored. Null if it does not exist.
   * @throws OperationalError mysql
   */
  find(version: number): Promise<StoredRules | null> {
    return this.#parts.repository.find(version);
  }

  /** Returns the problems of these rules. Empty if there are none. Changes nothing. */
  check(rules: unknown): readonly RuleReason[] {
    const parsed = parseRules(rules, this.#parts.unfit);
    return 'reasons' in parsed ? parsed.reasons : [];
  }

  /**
   * @param version from which the new rules were made
   * @throws OperationalError mysql; the rules may be stored all the same, which `show` tells
   */
  async publish(rules: unknown, version: number, actor: string): Promise<PublishAnswer> {
    const parsed = parseRules(rules, this.#parts.unfit);
    if ('reasons' in parsed) return { outcome: 'invalid', reasons: parsed.reasons };
    const toStore = storedRules(parsed.rules);
    const stored = await this.#parts.repository.store(toStore, version, actor);
    if (stored.outcome === 'version_conflict') return stored;
    const seenAtOnce = await this.#announce({ version: stored.version, rules: toStore });
    return { outcome: 'published', version: stored.version, seenAtOnce };
  }

  /**
   * Returns the newest changes first.
   * @throws OperationalError mysql
   */
  history(max: number): Promise<RuleChange[]> {
    return this.#parts.repository.history(max);
  }

  /** Announces stored rules. An outage of Redis does not undo the change. */
  async #announce(stored: StoredRules): Promise<boolean> {
    try {
      await this.#parts.broadcast.announce(stored);
      return true;
    } catch (err) {
      if (!(err instanceof OperationalError)) throw err;
      this.#parts.log.warn({ err, version: stored.version }, 'new rules are stored, but Redis does not announce them');
      return false;
    }
  }
}
