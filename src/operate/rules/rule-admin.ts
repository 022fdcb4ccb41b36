import { isDeepStrictEqual } from 'node:util';
import { OperationalError } from '../../core/errors.js';
import type { Log } from '../../core/ports/log.js';
import type {
  RuleBroadcast,
  RuleChange,
  RuleRepository,
  StoredInForce,
  StoredRules,
  VersionParts,
} from '../../core/ports/rules.js';
import {
  parseCanary,
  parseStored,
  untriable,
  type Canary,
  type CanaryTerms,
  type RulesInForce,
} from '../../admission/rules/canary.js';
import { parseRules, storedRules, type Fitness, type RuleReason } from '../../admission/rules/rule-set.js';

interface RuleAdminParts {
  readonly repository: RuleRepository;
  readonly broadcast: Pick<RuleBroadcast, 'announce'>;
  readonly log: Log;
  /** Checks whether an api can use rules. Omitted if this process cannot know. */
  readonly unfit?: Fitness | undefined;
}

/**
 * - `published`: in a new version, unless the newest has the same rules. With `seenAtOnce`, Redis announces it, and every
 *   api follows within a second. Otherwise each api finds it in MySQL within ten seconds
 * - `invalid`: nothing was changed; the reasons say why
 * - `version_conflict`: other rules were published in the meantime; read that version first
 * - `canary_running`: a canary must end first; nothing was changed
 */
export type PublishAnswer =
  | { readonly outcome: 'published'; readonly version: number; readonly seenAtOnce: boolean }
  | { readonly outcome: 'invalid'; readonly reasons: readonly RuleReason[] }
  | { readonly outcome: 'version_conflict'; readonly version: number }
  | { readonly outcome: 'canary_running' };
type Replaced = Exclude<PublishAnswer, { readonly outcome: 'canary_running' }>;

/** The answer if this program cannot read the newest rules and so cannot change them. */
export interface Unfit {
  readonly outcome: 'rules_unfit';
  readonly reasons: readonly RuleReason[];
}

/** The newest rules as this program reads them. */
export type NewestRules = RulesInForce & { readonly version: number };

/** How a canary ends: its rules are in force for all users, or for none. */
export type CanaryEnd = 'promoted' | 'rolled_back';

export class RuleAdmin {
  readonly #parts: RuleAdminParts;

  constructor(parts: RuleAdminParts) {
    this.#parts = parts;
  }

  /** Fills in every default. @throws OperationalError mysql */
  async show(): Promise<StoredRules> {
    const { version, rules } = await this.#parts.repository.current();
    const parsed = parseRules(rules);
    // Rules of an older or newer program may be unreadable here. They are shown unchanged.
    return { version, rules: 'rules' in parsed ? parsed.rules : rules };
  }

  /** Returns the newest version and its canary. Null: no canary, or this program cannot read it. */
  async standing(): Promise<{ readonly version: number; readonly canary: Canary | null }> {
    const { version, canary } = await this.#parts.repository.current();
    const parsed = parseCanary(canary);
    return { version, canary: 'reasons' in parsed ? null : parsed.canary };
  }

  /** @throws OperationalError mysql */
  async read(): Promise<NewestRules | Unfit> {
    const { version, ...stored } = await this.#parts.repository.current();
    const parsed = parseStored(stored);
    return 'reasons' in parsed ? { outcome: 'rules_unfit', reasons: parsed.reasons } : { version, ...parsed };
  }

  /** Returns rules as they were stored, or null for an unknown version. @throws OperationalError mysql */
  find(version: number): Promise<StoredRules | null> {
    return this.#parts.repository.find(version);
  }

  /** Returns the problems of these rules. Empty if there are none. Changes nothing. */
  check(rules: unknown): readonly RuleReason[] {
    const parsed = parseRules(rules, this.#parts.unfit);
    return 'reasons' in parsed ? parsed.reasons : [];
  }

  /** @param version the base. @param terms null: all users. @throws OperationalError mysql; rules may be stored */
  async publish(
    rules: unknown,
    version: number,
    actor: string,
    terms: CanaryTerms | null = null,
  ): Promise<PublishAnswer> {
    const parsed = parseRules(rules, this.#parts.unfit);
    if ('reasons' in parsed) return { outcome: 'invalid', reasons: parsed.reasons };
    const newest = await this.read();
    if ('canary' in newest && newest.canary !== null) return { outcome: 'canary_running' };
    const before = 'rules' in newest && newest.version === version ? newest : { version };
    if (terms === null) return this.replace({ rules: parsed.rules, canary: null }, before, actor);
    if ('outcome' in newest) return { outcome: 'invalid', reasons: newest.reasons };
    if (newest.version !== version) return { outcome: 'version_conflict', version: newest.version };
    const reasons = untriable(newest.rules, parsed.rules);
    if (reasons.length > 0) return { outcome: 'invalid', reasons };
    const canary: Canary = { ...terms, since: version + 1, rules: parsed.rules };
    return this.replace({ rules: newest.rules, canary }, { version }, actor, {
      action: 'rules.canary_started',
      more: terms,
    });
  }

  /** Publishes these rules and this canary as a new version. @throws OperationalError mysql; they may be stored */
  async replace(
    { rules: inForce, canary }: RulesInForce,
    before: NewestRules | { readonly version: number },
    actor: string,
    event: VersionParts = {},
  ): Promise<Replaced> {
    const rules = storedRules(inForce);
    const read = parseStored({ rules, canary }, this.#parts.unfit);
    if ('reasons' in read) return { outcome: 'invalid', reasons: read.reasons };
    const { version } = before;
    const isSame =
      'rules' in before && version > 0 && isDeepStrictEqual([inForce, canary], [before.rules, before.canary]);
    const stored = isSame
      ? ({ outcome: 'unchanged', version } as const)
      : await this.#parts.repository.store(rules, version, actor, { ...event, canary });
    if (stored.outcome === 'version_conflict') return stored;
    const seenAtOnce = await this.#announce({ version: stored.version, rules, canary });
    return { outcome: 'published', version: stored.version, seenAtOnce };
  }

  /** @param why for the audit log. @throws OperationalError mysql; the canary may have ended */
  async endCanary(
    { rules, canary, version }: NewestRules,
    end: CanaryEnd,
    actor: string,
    why: object = {},
  ): Promise<Replaced | { readonly outcome: 'no_canary' }> {
    if (canary === null) return { outcome: 'no_canary' };
    const inForce = { rules: end === 'promoted' ? canary.rules : rules, canary: null };
    return this.replace(inForce, { version }, actor, {
      action: `rules.canary_${end}`,
      more: { since: canary.since, ...why },
    });
  }

  /** Lists the newest first. @throws OperationalError mysql */
  history(max: number): Promise<RuleChange[]> {
    return this.#parts.repository.history(max);
  }

  /** An outage of Redis does not undo the change. */
  async #announce(stored: StoredInForce): Promise<boolean> {
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
