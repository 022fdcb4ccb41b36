import type { Mode } from '../mode.js';
import type { RuleAdmin } from '../rules/rule-admin.js';
import { parseRules, type RuleReason, type RuleSet } from '../rules/rule-set.js';
import { switchRows, withSwitch, type SwitchChange, type SwitchRow } from './switches.js';

/** Who publishes other rules at the same moment changes the version under us; the switch is then set in those. */
const TRIES = 5;

/** The newest rules cannot be read by this program, so nothing can be set in them. */
export interface Unfit {
  readonly outcome: 'rules_unfit';
  readonly reasons: readonly RuleReason[];
}

export interface FoundSwitches {
  readonly outcome: 'found';
  /** Of the rule set. */
  readonly version: number;
  readonly mode: Mode;
  readonly switches: readonly SwitchRow[];
}

/**
 * - `switched`: stored; `seenAtOnce` as with all rules
 * - `version_conflict`: others published again and again meanwhile; nothing was changed
 */
export type SwitchAnswer =
  | { readonly outcome: 'switched'; readonly version: number; readonly seenAtOnce: boolean; readonly row: SwitchRow }
  | { readonly outcome: 'version_conflict'; readonly version: number }
  | Unfit;

/** What operators do with the switches. Each change is a new version of the rules, so it is audited as any other. */
export class SwitchAdmin {
  readonly #admin: Pick<RuleAdmin, 'show' | 'publish'>;

  constructor(admin: Pick<RuleAdmin, 'show' | 'publish'>) {
    this.#admin = admin;
  }

  /** @throws OperationalError mysql */
  async show(): Promise<FoundSwitches | Unfit> {
    const read = await this.#read();
    if ('outcome' in read) return read;
    const { version, rules } = read;
    return { outcome: 'found', version, mode: rules.degrade.mode, switches: switchRows(rules.degrade) };
  }

  /** @throws OperationalError mysql; it may be set all the same, which `show` tells */
  async set(change: SwitchChange, actor: string): Promise<SwitchAnswer> {
    let version = 0;
    for (let tried = 0; tried < TRIES; tried++) {
      const read = await this.#read();
      if ('outcome' in read) return read;
      const rules = withSwitch(read.rules, change);
      const answer = await this.#admin.publish(rules, read.version, actor);
      if (answer.outcome === 'invalid') return { outcome: 'rules_unfit', reasons: answer.reasons };
      version = answer.version;
      if (answer.outcome === 'version_conflict') continue;
      const row = switchRows(rules.degrade).find(({ endpoint }) => endpoint === change.endpoint) as SwitchRow;
      return { outcome: 'switched', version, seenAtOnce: answer.seenAtOnce, row };
    }
    return { outcome: 'version_conflict', version };
  }

  async #read(): Promise<{ readonly version: number; readonly rules: RuleSet } | Unfit> {
    const { version, rules } = await this.#admin.show();
    const parsed = parseRules(rules);
    return 'reasons' in parsed ? { outcome: 'rules_unfit', reasons: parsed.reasons } : { version, rules: parsed.rules };
  }
}
