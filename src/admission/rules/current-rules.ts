import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { RuleBroadcast, RuleUpdate, RuleRepository, StoredRules } from '../../core/ports/rules.js';
import type { AdmissionMetrics } from '../metrics.js';
import { ALL_OFF, isAnyOn, parseRules, type Fitness, type RuleSet } from './rule-set.js';

/** Redis is read this often, so that every process follows new rules well within a second. */
const BROADCAST_POLL_MS = 250;
/** MySQL is read this often in any case, for rules that were stored and could not be announced. */
const REPOSITORY_POLL_MS = 10_000;
/** And this often while Redis is away or has lost what it knew. */
const REPOSITORY_POLL_INSTEAD_MS = 1000;

interface CurrentRulesParts {
  readonly broadcast: RuleBroadcast;
  readonly repository: Pick<RuleRepository, 'current'>;
  readonly clock: Clock;
  readonly metrics: Pick<AdmissionMetrics, 'rulesTaken' | 'rulesRefused'>;
  readonly log: Log;
  /** Left out: rules that are well-formed can be used. */
  readonly unfit?: Fitness;
}

/**
 * The rules that this process follows. They only go forward: a newer version replaces an older one if this process can
 * use it, wherever it was read. Whatever fails, the present rules stay.
 */
export class CurrentRules {
  readonly #parts: CurrentRulesParts;
  readonly #redisOutage: OutageLog;
  readonly #mysqlOutage: OutageLog;
  #rules = ALL_OFF;
  #isAnyOn = false;
  /** Newest version that was read, whether it could be used or not. */
  #seen = 0;
  #repositoryReadMs = -Infinity;
  #reading: Promise<void> | null = null;

  constructor(parts: CurrentRulesParts) {
    this.#parts = parts;
    this.#redisOutage = new OutageLog(parts.log, {
      begins: 'Redis does not announce new rules; MySQL is read once a second instead',
      ends: 'Redis announces new rules again',
    });
    this.#mysqlOutage = new OutageLog(parts.log, {
      begins: 'new rules cannot be read from MySQL; the present ones stay',
      ends: 'new rules can be read from MySQL again',
    });
  }

  get rules(): RuleSet {
    return this.#rules;
  }

  /** False: every layer is off, and none needs to be called. */
  get isAnyOn(): boolean {
    return this.#isAnyOn;
  }

  /**
   * Reads the rules once, before buyers come.
   * @throws OperationalError mysql
   */
  async start(): Promise<void> {
    this.#take(await this.#parts.repository.current());
  }

  /** Follows new rules until the signal aborts. */
  async poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.runOnce();
      await this.#parts.clock.sleep(BROADCAST_POLL_MS, signal);
    }
    await this.#reading;
  }

  /** Reads Redis; MySQL, which may be slow, is read beside it when it is due. Never rejects. */
  async runOnce(): Promise<void> {
    const update = await this.#readBroadcast();
    if (update?.is === 'newer') this.#take(update.stored);
    const everyMs = update === null || update.is === 'behind' ? REPOSITORY_POLL_INSTEAD_MS : REPOSITORY_POLL_MS;
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#reading !== null || nowMs - this.#repositoryReadMs < everyMs) return;
    this.#repositoryReadMs = nowMs;
    this.#reading = this.#readRepository(update).finally(() => (this.#reading = null));
  }

  async #readBroadcast(): Promise<RuleUpdate | null> {
    try {
      const update = await this.#parts.broadcast.newerThan(this.#seen);
      this.#redisOutage.end();
      return update;
    } catch (error) {
      this.#redisOutage.failed(error);
      return null;
    }
  }

  /** What Redis has missed or lost is announced again. */
  async #readRepository(update: RuleUpdate | null): Promise<void> {
    try {
      const stored = await this.#parts.repository.current();
      this.#mysqlOutage.end();
      const isMissed = stored.version > this.#seen || update?.is === 'behind';
      this.#take(stored);
      if (isMissed && update !== null) await this.#announce(stored);
    } catch (error) {
      this.#mysqlOutage.failed(error);
    }
  }

  async #announce(stored: StoredRules): Promise<void> {
    try {
      await this.#parts.broadcast.announce(stored);
    } catch (error) {
      this.#redisOutage.failed(error);
    }
  }

  #take({ version, rules }: StoredRules): void {
    if (version <= this.#seen) return;
    this.#seen = version; // a version that cannot be used is not tried again
    const { log, metrics, unfit } = this.#parts;
    const parsed = parseRules(rules, unfit);
    if ('reasons' in parsed) {
      metrics.rulesRefused();
      return log.error(
        { version, reasons: parsed.reasons },
        'new admission rules cannot be used; the present ones stay',
      );
    }
    this.#rules = parsed.rules;
    this.#isAnyOn = isAnyOn(parsed.rules);
    metrics.rulesTaken(version);
    log.info({ version }, 'new admission rules are in force');
  }
}

/** Logs the first of many failures in a row, and their end. */
class OutageLog {
  readonly #log: Log;
  readonly #messages: { readonly begins: string; readonly ends: string };
  #failures = 0;

  constructor(log: Log, messages: { readonly begins: string; readonly ends: string }) {
    this.#log = log;
    this.#messages = messages;
  }

  failed(err: unknown): void {
    if (this.#failures++ === 0) this.#log.warn({ err }, this.#messages.begins);
  }

  end(): void {
    if (this.#failures > 0) this.#log.info({ failures: this.#failures }, this.#messages.ends);
    this.#failures = 0;
  }
}
