import { OperationalError } from '../../core/errors.js';
import { toNextTick } from '../../core/job.js';
import { OutageLog } from '../../core/outage-log.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type {
  RuleBroadcast,
  RuleReport,
  RuleReports,
  RuleRepository,
  RuleUpdate,
  StoredInForce,
} from '../../core/ports/rules.js';
import type { Layer, Mode, Refused } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';
import { judges, noCounts, parseCanary, type Canary } from './canary.js';
import { DEFAULT_RULES, isAnyOn, parseRules, type Fitness, type RuleSet } from './rule-set.js';

/** Interval between two reads of Redis, so that every process follows new rules well within a second. */
const BROADCAST_POLL_MS = 500;
/** Interval between two reads of MySQL, for rules that were stored but could not be announced. */
const REPOSITORY_POLL_MS = 10_000;
/** The same while Redis is down or has lost its data. */
const REPOSITORY_POLL_INSTEAD_MS = 1000;
/** Pause between reports, which every change sends too. An api that misses three reports no longer counts. */
const REPORT_EVERY_MS = 1000;
const REPORT_LIFE_MS = 3500;
/** Maximum number of reasons in a report, which is kept in Redis, and in `/readyz`. */
const REASONS_SHOWN = 3;

interface CurrentRulesParts {
  readonly broadcast: RuleBroadcast;
  readonly repository: RuleRepository;
  readonly reports: RuleReports;
  /** Identifies this process in its reports. */
  readonly reporter: Pick<RuleReport, 'processId' | 'host' | 'pid'>;
  readonly clock: Clock;
  readonly metrics: AdmissionMetrics;
  readonly log: Log;
  /** Checks whether rules can be used here. If omitted, all well-formed rules can. */
  readonly unfit?: Fitness;
}

/** The rules in force in this process, as in a report. */
export type RulesStanding = Pick<RuleReport, 'version' | 'refused'>;

/**
 * The rules that this process follows. They only move forward: a newer version replaces an older one if this process
 * can use it, wherever it was read. They stay through any failure. A process that cannot use the newest rules at its
 * start is not ready and admits no buyer until it reads usable rules.
 */
export class CurrentRules {
  readonly #parts: CurrentRulesParts;
  readonly #redisOutage: OutageLog;
  readonly #writeOutage: OutageLog;
  readonly #mysqlOutage: OutageLog;
  #rules = DEFAULT_RULES;
  #canary: Canary | null = null;
  /** The answers to purchases since the canary began. Null: no canary runs. */
  #counts: ReturnType<typeof noCounts> | null = null;
  #isAnyOn = true;
  #standing: RulesStanding = { version: null, refused: null };
  #reported: RulesStanding | null = null;
  #reportedMs = -Infinity;
  #reporting: Promise<void> | null = null;
  /** Newest version read, whether or not it could be used. */
  #seen = -1;
  #repositoryReadMs = -Infinity;
  #reading: Promise<void> | null = null;
  /** The bug of a read or report in the background. Null: no bug. */
  #bug: { readonly error: unknown } | null = null;

  constructor(parts: CurrentRulesParts) {
    this.#parts = parts;
    this.#redisOutage = new OutageLog(parts.log, {
      begins: 'Redis does not announce new rules; this process reads MySQL once a second instead',
      ends: 'Redis announces new rules again',
    });
    this.#writeOutage = new OutageLog(parts.log, {
      begins: 'Redis stores no admission rules or reports about them, but can be read',
      ends: 'Redis stores admission rules and reports again',
    });
    this.#mysqlOutage = new OutageLog(parts.log, {
      begins: 'could not read new rules from MySQL; the current rules stay in force',
      ends: 'new rules can be read from MySQL again',
    });
  }

  get rules(): RuleSet {
    return this.#rules;
  }

  /** Returns the rules that judge a user. Without a user these are the rules in force, also while a canary runs. */
  of(userId: string | null): RuleSet {
    const canary = this.#canary;
    return canary !== null && userId !== null && judges(canary, userId) ? canary.rules : this.#rules;
  }

  count(userId: string, answer: 'accepted' | 'refused'): void {
    if (this.#canary === null || this.#counts === null) return;
    const side = judges(this.#canary, userId) ? 'tried' : 'others';
    this.#counts[side][answer]++;
    this.#parts.metrics.canaryAnswered(side, answer);
  }

  /** False if every layer is off. True during a canary or without rules in force. */
  get isAnyOn(): boolean {
    return this.#isAnyOn;
  }

  /** Replaced by a new object at each change. */
  get standing(): RulesStanding {
    return this.#standing;
  }

  /** Reads the rules once, before buyers come. @throws OperationalError mysql */
  async start(): Promise<void> {
    this.#take(await this.#parts.repository.current());
  }

  /** Follows new rules until the signal aborts. Rejects only for a bug. */
  async poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.runOnce();
      await toNextTick(this.#parts.clock, BROADCAST_POLL_MS, signal);
    }
    await Promise.all([this.#reading, this.#reporting]);
    const { reports, reporter, log } = this.#parts;
    await reports.withdraw(reporter.processId).catch((err: unknown) => {
      log.debug({ err }, 'could not withdraw the rules report of this process; it expires by itself');
    });
    this.#throwBug();
  }

  /**
   * Reads Redis, and MySQL in the background when due, because it may be slow. Rejects only for a bug, also of
   * background work that an earlier run began.
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

  /** Runs work without a waiting caller. Keeps its bug for the next call. Never rejects. */
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

  /** Also announces the rules again if Redis has missed or lost them. */
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
      await reports.report({ ...reporter, ...standing, canary: structuredClone(this.#counts) }, REPORT_LIFE_MS);
      [this.#reported, this.#reportedMs] = [standing, nowMs];
      this.#writeOutage.end();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#writeOutage.failed(error);
    }
  }

  async #announce(stored: StoredInForce): Promise<void> {
    try {
      await this.#parts.broadcast.announce(stored);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#writeOutage.failed(error);
    }
  }

  #take({ version, rules, canary }: StoredInForce): void {
    if (version <= this.#seen) return;
    this.#seen = version; // an unusable version is not tried again
    const { log, metrics, unfit } = this.#parts;
    const parsed = parseRules(rules, unfit);
    if ('reasons' in parsed) {
      metrics.rulesRefused(version);
      const reasons = parsed.reasons.slice(0, REASONS_SHOWN).map(({ path, message }) => `${path} ${message}`);
      this.#standing = { ...this.#standing, refused: { version, reasons } };
      return log.error(
        { version, reasons: parsed.reasons },
        this.#standing.version === null
          ? 'this process cannot use the admission rules and admits no buyer'
          : 'this process cannot use the new admission rules; the current rules stay in force',
      );
    }
    const tried = parseCanary(canary);
    if ('reasons' in tried) {
      log.error(
        { version, reasons: tried.reasons },
        'this process cannot use the canary of the admission rules; the rules in force judge all users',
      );
    }
    this.#rules = parsed.rules;
    this.#canary = 'reasons' in tried ? null : tried.canary;
    if (this.#counts?.since !== this.#canary?.since) this.#counts = this.#canary && noCounts(this.#canary.since);
    this.#isAnyOn = this.#canary !== null || isAnyOn(parsed.rules);
    this.#standing = { version, refused: null };
    metrics.rulesTaken(version);
    log.info({ version }, 'new admission rules are in force');
  }
}

const NOBODY: Refused = { word: 'unavailable', retryAfterMs: null };

/** Admits no buyer without rules in force: unreadable rules may deny this very buyer. */
export class RulesLayer implements Layer {
  readonly name = 'rules';
  readonly #current: CurrentRules;

  constructor(current: CurrentRules) {
    this.#current = current;
  }

  modeOf(): Mode {
    return this.#current.standing.version === null ? 'on' : 'off';
  }

  anonymous(): Refused {
    return NOBODY;
  }

  buyer(): Refused {
    return NOBODY;
  }
}

/** The check for `/readyz`. A process without rules is not ready; a process with older rules is, and says so. */
export function rulesReadiness({ version, refused }: RulesStanding): { readonly ok: boolean; readonly detail: string } {
  const kept = version === null ? 'no version is in force, and no buyer is admitted' : `version ${version} is in force`;
  if (refused === null) return { ok: version !== null, detail: kept };
  return {
    ok: version !== null,
    detail: `${kept}; version ${refused.version} cannot be used here: ${refused.reasons.join('; ')}`,
  };
}
