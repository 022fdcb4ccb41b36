import { OperationalError } from '../../core/errors.js';
import type { Log } from '../../core/ports/log.js';
import type { RuleBroadcast, RuleChange, RuleRepository, StoredRules } from '../../core/ports/rules.js';
import { parseRules, storedRules, type Fitness, type RuleReason } from './rule-set.js';

interface RuleAdminParts {
  readonly repository: RuleRepository;
  readonly broadcast: Pick<RuleBroadcast, 'announce'>;
  readonly log: Log;
  /** What this process, which stands for all apis, cannot use. Left out: not known here. */
  readonly unfit?: Fitness;
}

/**
 * What became of new rules.
 * - `published`: stored. `seenAtOnce`: Redis announces them, so every api follows them within a second; else each finds
 *   them in MySQL, within ten seconds
 * - `invalid`: nothing was changed; the reasons say why
 * - `version_conflict`: other rules were published meanwhile; read that version first
 */
export type PublishAnswer =
  | { readonly outcome: 'published'; readonly version: number; readonly seenAtOnce: boolean }
  | { readonly outcome: 'invalid'; readonly reasons: readonly RuleReason[] }
  | { readonly outcome: 'version_conflict'; readonly version: number };

/** What operators do with the rules of admission. */
export class RuleAdmin {
  readonly #parts: RuleAdminParts;

  constructor(parts: RuleAdminParts) {
    this.#parts = parts;
  }

  /** The newest rules, with every default filled in. @throws OperationalError mysql */
  async show(): Promise<StoredRules> {
    const { version, rules } = await this.#parts.repository.current();
    const parsed = parseRules(rules);
    // Rules of an older or newer program may be unreadable here; then they are shown as they are.
    return { version, rules: 'rules' in parsed ? parsed.rules : rules };
  }

  /** One version as it was stored; null: there is none. @throws OperationalError mysql */
  find(version: number): Promise<StoredRules | null> {
    return this.#parts.repository.find(version);
  }

  /** What is wrong with these rules; an empty list: nothing. Changes nothing. */
  check(rules: unknown): readonly RuleReason[] {
    const parsed = parseRules(rules, this.#parts.unfit);
    return 'reasons' in parsed ? parsed.reasons : [];
  }

  /**
   * @param version that the new rules were made from
   * @throws OperationalError mysql; they may be stored all the same, which `show` tells
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

  /** The newest changes first. @throws OperationalError mysql */
  history(max: number): Promise<RuleChange[]> {
    return this.#parts.repository.history(max);
  }

  /** The rules are stored: that Redis is away does not undo it. */
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
