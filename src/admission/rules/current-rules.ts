import type { Clock } from '../../core/ports/clock.js';
import type { AdmissionMetrics } from '../../core/ports/admission-metrics.js';
import type { Log } from '../../core/ports/log.js';
import type { RuleAnnouncement, RuleBroadcast, RuleRepository, StoredRules } from '../../core/ports/rules.js';
import { ALL_OFF, isAnyOn, parseRules, type Fitness, type RuleSet } from './rule-set.js';

/** The board is asked this often, so that new rules are in force everywhere well within a second. */
const BOARD_LOOK_MS = 250;
/** The store is looked at this often although the board says nothing, for what a publisher stored and could not put up. */
const STORE_LOOK_MS = 10_000;
/** And this often while the board is away, or has forgotten what we know. */
const STORE_LOOK_INSTEAD_MS = 1000;

export interface CurrentRulesPorts {
  readonly board: RuleBroadcast;
  readonly store: Pick<RuleRepository, 'current'>;
  readonly clock: Clock;
  readonly metrics: Pick<AdmissionMetrics, 'rulesTaken' | 'rulesRefused'>;
  readonly log: Log;
  /** Left out: rules that are well-formed are fit. */
  readonly unfit?: Fitness;
}

/**
 * The rules in force in this process. It only ever goes forward: a newer version takes the place of an older one if it
 * is fit to, whether the board or the store told of it. Whatever fails, the rules that are in force stay.
 */
export class CurrentRules {
  readonly #ports: CurrentRulesPorts;
  readonly #boardOutage: Outage;
  readonly #storeOutage: Outage;
  #rules = ALL_OFF;
  #isAnyOn = false;
  /** The newest version looked at, taken or refused. */
  #seen = 0;
  #storeLookedMs = -Infinity;
  #storeLook: Promise<void> | null = null;

  constructor(ports: CurrentRulesPorts) {
    this.#ports = ports;
    this.#boardOutage = new Outage(ports.log, {
      begins: 'Redis does not tell of new rules; MySQL is asked once a second instead',
      ends: 'Redis tells of new rules again',
    });
    this.#storeOutage = new Outage(ports.log, {
      begins: 'MySQL does not tell of new rules; those in force stay',
      ends: 'MySQL tells of new rules again',
    });
  }

  get rules(): RuleSet {
    return this.#rules;
  }

  /** False: every layer is off, and nobody needs to be asked. */
  get isAnyOn(): boolean {
    return this.#isAnyOn;
  }

  /**
   * The first look, before buyers come.
   * @throws OperationalError mysql
   */
  async start(): Promise<void> {
    this.#take(await this.#ports.store.current());
  }

  /** Looks again and again until the signal aborts. */
  async keepLooking(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.runOnce();
      await this.#ports.clock.sleep(BOARD_LOOK_MS, signal);
    }
    await this.#storeLook;
  }

  /** One look at the board; the store is looked at beside it, since it may be slow. Never rejects. */
  async runOnce(): Promise<void> {
    const news = await this.#askBoard();
    if (news?.board === 'newer') this.#take(news.stored);
    const everyMs = news === null || news.board === 'behind' ? STORE_LOOK_INSTEAD_MS : STORE_LOOK_MS;
    const nowMs = this.#ports.clock.nowMs();
    if (this.#storeLook !== null || nowMs - this.#storeLookedMs < everyMs) return;
    this.#storeLookedMs = nowMs;
    this.#storeLook = this.#lookAtStore(news).finally(() => (this.#storeLook = null));
  }

  async #askBoard(): Promise<RuleAnnouncement | null> {
    try {
      const news = await this.#ports.board.notificationsSince(this.#seen);
      this.#boardOutage.end();
      return news;
    } catch (error) {
      this.#boardOutage.tell(error);
      return null;
    }
  }

  /** What the board has missed or forgotten is put up again. */
  async #lookAtStore(news: RuleAnnouncement | null): Promise<void> {
    try {
      const stored = await this.#ports.store.current();
      this.#storeOutage.end();
      const isMissed = stored.version > this.#seen || news?.board === 'behind';
      this.#take(stored);
      if (isMissed && news !== null) await this.#post(stored);
    } catch (error) {
      this.#storeOutage.tell(error);
    }
  }

  async #post(stored: StoredRules): Promise<void> {
    try {
      await this.#ports.board.post(stored);
    } catch (error) {
      this.#boardOutage.tell(error);
    }
  }

  #take({ version, rules }: StoredRules): void {
    if (version <= this.#seen) return;
    this.#seen = version; // a version that is refused is not looked at again
    const { log, metrics, unfit } = this.#ports;
    const parsed = parseRules(rules, unfit);
    if ('reasons' in parsed) {
      metrics.rulesRefused();
      return log.error({ version, reasons: parsed.reasons }, 'rules of the entry were refused; those in force stay');
    }
    this.#rules = parsed.rules;
    this.#isAnyOn = isAnyOn(parsed.rules);
    metrics.rulesTaken(version);
    log.info({ version }, 'rules of the entry are in force');
  }
}

/** Tells of the first of many failures in a row, and of their end. */
class Outage {
  readonly #log: Log;
  readonly #words: { readonly begins: string; readonly ends: string };
  #failures = 0;

  constructor(log: Log, words: { readonly begins: string; readonly ends: string }) {
    this.#log = log;
    this.#words = words;
  }

  tell(err: unknown): void {
    if (this.#failures++ === 0) this.#log.warn({ err }, this.#words.begins);
  }

  end(): void {
    if (this.#failures > 0) this.#log.info({ failures: this.#failures }, this.#words.ends);
    this.#failures = 0;
  }
}
