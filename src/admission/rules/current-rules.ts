import { OperationalError } from '../../core/errors.js';
import { OutageLog } from '../../core/outage-log.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type {
  RuleBroadcast,
  RuleReport,
  RuleReports,
  RuleRepository,
  RuleUpdate,
  StoredRules,
} from '../../core/ports/rules.js';
import type { Layer, Refused } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';
import { DEFAULT_RULES, isAnyOn, parseRules, type Fitness, type RuleSet } from './rule-set.js';

/** Redis is read this often, so that every process follows new rules well within a second. */
const BROADCAST_POLL_MS = 250;
/** MySQL is read this often in any case, for rules that were stored and could not be announced. */
const REPOSITORY_POLL_MS = 10_000;
/** And this often while Redis is away or has lost what it knew. */
const REPOSITORY_POLL_INSTEAD_MS = 1000;
/** A report is written anew this often, and at once when it changes; an api that misses three is not counted any more. */
const REPORT_EVERY_MS = 1000;
const REPORT_LIFE_MS = 3500;
/** For a report, which is kept in Redis, and for `/readyz`. */
const REASONS_SHOWN = 3;

interface CurrentRulesParts {
  readonly broadcast: RuleBroadcast;
  readonly repository: RuleRepository;
  readonly reports: RuleReports;
  /** Whose reports these are. */
  readonly reporter: Pick<RuleReport, 'processId' | 'host' | 'pid'>;
  readonly clock: Clock;
  readonly metrics: AdmissionMetrics;
  readonly log: Log;
  /** Left out: rules that are well-formed can be used. */
  readonly unfit?: Fitness;
}

/** Which rules are in force in this process, as a report has it. */
export type RulesStanding = Pick<RuleReport, 'version' | 'refused'>;

/**
 * The rules that this process follows. They only go forward: a newer version replaces an older one if this process can
 * use it, wherever it was read. Whatever fails, the present rules stay. A process that could not use the newest rules at
 * its start has none: it is not ready, and lets no buyer in, until it reads rules that it can use.
 */
export class CurrentRules {
  readonly #parts: CurrentRulesParts;
  readonly #redisOutage: OutageLog;
  readonly #mysqlOutage: OutageLog;
  #rules = DEFAULT_RULES;
  #isAnyOn = true;
  #standing: RulesStanding = { version: null, refused: null };
  #reported: RulesStanding | null = null;
  #reportedMs = -Infinity;
  #reporting: Promise<void> | null = null;
  /** Newest version that was read, whether it could be used or not. */
  #seen = -1;
  #repositoryReadMs = -Infinity;
  #reading: Promise<void> | null = null;
  /** Of what is read or reported beside a run; null: none. */
  #bug: { readonly error: unknown } | null = null;

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

  /** False: every layer is off, and none needs to be called. True as well while no rules are in force. */
  get isAnyOn(): boolean {
    return this.#isAnyOn;
  }

  /** Replaced when it changes. */
  get standing(): RulesStanding {
    return this.#standing;
  }

  /**
   * Reads the rules once, before buyers come.
   * @throws OperationalError mysql
   */
  async start(): Promise<void> {
    this.#take(await this.#parts.repository.current());
  }

  /** Follows new rules until the signal aborts. Rejects with a bug only. */
  async poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.runOnce();
      await this.#parts.clock.sleep(BROADCAST_POLL_MS, signal);
    }
    await Promise.all([this.#reading, this.#reporting]);
    const { reports, reporter, log } = this.#parts;
    await reports.withdraw(reporter.processId).catch((err: unknown) => {
      log.debug({ err }, 'the report of the rules of this process could not be withdrawn; it ends by itself');
    });
    this.#throwBug();
  }

  /**
   * Reads Redis; MySQL, which may be slow, is read beside it when it is due. Rejects with a bug only, also with one of what was begun
   * beside the run before.
   */
  async runOnce(): Promise<void> {
    this.#throwBug();
    const update = await this.#readBroadcast();
    if (update?.is === 'newer') this.#take(update.stored);
    if (update !== null) this.#reporting ??= this.#beside(this.#report()).finally(() => (this.#reporting = null));
    const everyMs = update === null || update.is === 'behind' ? REPOSITORY_POLL_INSTEAD_MS : REPOSITORY_POLL_MS;
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#reading !== null || nowMs - this.#repositoryReadMs < everyMs) return;
    this.#repositoryReadMs = nowMs;
    this.#reading = this.#beside(this.#readRepository(update)).finally(() => (this.#reading = null));
  }

  /** Nobody waits for it: its bug is kept for who calls next. Never rejects. */
  #beside(work: Promise<void>): Promise<void> {
    return work.catch((error: unknown) => void (this.#bug = { error }));
  }

  #throwBug(): void {
    if (this.#bug !== null) throw this.#bug.error;
  }

  async #readBroadcast(): Promise<RuleUpdate | null> {
    try {
      const update = await this.#parts.broadcast.newerThan(this.#seen);
      this.#redisOutage.end();
      return update;
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
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
      if (!(error instanceof OperationalError)) throw error;
      this.#mysqlOutage.failed(error);
    }
  }

  async #report(): Promise<void> {
    const { clock, reports, reporter } = this.#parts;
    const standing = this.#standing;
    const nowMs = clock.monotonicMs();
    if (standing === this.#reported && nowMs - this.#reportedMs < REPORT_EVERY_MS) return;
    try {
      await reports.report({ ...reporter, ...standing }, REPORT_LIFE_MS);
      [this.#reported, this.#reportedMs] = [standing, nowMs];
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#redisOutage.failed(error);
    }
  }

  async #announce(stored: StoredRules): Promise<void> {
    try {
      await this.#parts.broadcast.announce(stored);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#redisOutage.failed(error);
    }
  }

  #take({ version, rules }: StoredRules): void {
    if (version <= this.#seen) return;
    this.#seen = version; // a version that cannot be used is not tried again
    const { log, metrics, unfit } = this.#parts;
    const parsed = parseRules(rules, unfit);
    if ('reasons' in parsed) {
      metrics.rulesRefused(version);
      const reasons = parsed.reasons.slice(0, REASONS_SHOWN).map(({ path, message }) => `${path} ${message}`);
      this.#standing = { ...this.#standing, refused: { version, reasons } };
      return log.error(
        { version, reasons: parsed.reasons },
        this.#standing.version === null
          ? 'the admission rules cannot be used: no buyer is let in'
          : 'new admission rules cannot be used; the present ones stay',
      );
    }
    this.#rules = parsed.rules;
    this.#isAnyOn = isAnyOn(parsed.rules);
    this.#standing = { version, refused: null };
    metrics.rulesTaken(version);
    log.info({ version }, 'new admission rules are in force');
  }
}

const NOBODY: Refused = { word: 'unavailable', retryAfterMs: null };

/** Lets nobody in while no rules are in force: what cannot be read may deny the very buyer who asks. */
export class RulesLayer implements Layer {
  readonly name = 'rules';
  readonly #current: Pick<CurrentRules, 'standing'>;

  constructor(current: Pick<CurrentRules, 'standing'>) {
    this.#current = current;
  }

  get mode(): 'off' | 'on' {
    return this.#current.standing.version === null ? 'on' : 'off';
  }

  anonymous(): Refused {
    return NOBODY;
  }

  buyer(): Refused {
    return NOBODY;
  }
}

/** For `/readyz`: not ready without rules in force; one that keeps older rules is, and says so. */
export function rulesReadiness({ version, refused }: RulesStanding): { readonly ok: boolean; readonly detail: string } {
  const kept = version === null ? 'no version is in force, and no buyer is let in' : `version ${version} is in force`;
  if (refused === null) return { ok: version !== null, detail: kept };
  return {
    ok: version !== null,
    detail: `${kept}; version ${refused.version} cannot be used here: ${refused.reasons.join('; ')}`,
  };
}
