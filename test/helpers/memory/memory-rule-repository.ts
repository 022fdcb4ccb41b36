import { OperationalError } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { AuditEntry } from '../../../src/core/ports/audit-log.js';
import type {
  RuleUpdate,
  RuleBroadcast,
  RuleChange,
  RuleReport,
  RuleReports,
  RuleRepository,
  StoredInForce,
  StoredRules,
  StoreOutcome,
  VersionParts,
} from '../../../src/core/ports/rules.js';

interface Version extends RuleChange {
  readonly json: string;
  readonly canaryJson: string;
}

/** All versions of rules in memory. */
export class MemoryRuleRepository implements RuleRepository {
  /** While true, every call fails as if MySQL were down. */
  down = false;
  reads = 0;
  readonly audited: AuditEntry[] = [];
  readonly #versions: Version[] = [];

  async current(): Promise<StoredInForce> {
    this.#failIfDown();
    this.reads++;
    const newest = await this.find(this.#versions.length);
    if (newest === null) return { version: 0, rules: {}, canary: null };
    return { ...newest, canary: JSON.parse(this.#versions.at(-1)?.canaryJson ?? 'null') as unknown };
  }

  async find(version: number): Promise<StoredRules | null> {
    this.#failIfDown();
    const found = this.#versions[version - 1];
    return found === undefined ? null : { version, rules: JSON.parse(found.json) as unknown };
  }

  async store(
    rules: object,
    expectedVersion: number,
    actor: string,
    { canary = null, action = 'rules.published', more }: VersionParts = {},
  ): Promise<StoreOutcome> {
    this.#failIfDown();
    const before = await this.find(this.#versions.length);
    if (expectedVersion !== this.#versions.length)
      return { outcome: 'version_conflict', version: this.#versions.length };
    const version = this.#versions.length + 1;
    const [json, canaryJson] = [JSON.stringify(rules), JSON.stringify(canary)];
    this.#versions.push({ version, actor, atMs: Date.now(), json, canaryJson });
    this.audited.push({
      actor,
      action,
      subject: 'rules:admission',
      before: { version: expectedVersion },
      after: { version, changed: changed(before?.rules ?? {}, rules), ...more },
    });
    return { outcome: 'stored', version };
  }

  async ageMs(version: number): Promise<number | null> {
    this.#failIfDown();
    const found = this.#versions[version - 1];
    return found === undefined ? null : Date.now() - found.atMs;
  }

  async history(max: number): Promise<RuleChange[]> {
    this.#failIfDown();
    return this.#versions
      .toReversed()
      .slice(0, max)
      .map(({ version, actor, atMs }) => ({ version, actor, atMs }));
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('mysql', 'memory rule store is down', { retryable: true });
  }
}

const changed = (before: unknown, after: object): string[] =>
  Object.entries(after)
    .filter(([name, rules]) => JSON.stringify(rules) !== JSON.stringify((before as Record<string, unknown>)[name]))
    .map(([name]) => name);

/** The broadcast of rules in memory. A test may stop it or make it forget. */
export class MemoryRuleBroadcast implements RuleBroadcast {
  /** While true, every call fails as if Redis were down. */
  down = false;
  announced = 0;
  #stored: StoredInForce | null = null;

  async newerThan(version: number): Promise<RuleUpdate> {
    this.#failIfDown();
    if (this.#stored === null || this.#stored.version < version) return { is: 'behind' };
    return this.#stored.version === version ? { is: 'level' } : { is: 'newer', stored: this.#stored };
  }

  async announce(stored: StoredInForce): Promise<void> {
    this.#failIfDown();
    this.announced++;
    if (this.#stored === null || stored.version > this.#stored.version) this.#stored = stored;
  }

  forget(): void {
    this.#stored = null;
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('redis', 'memory rule broadcast is down', { retryable: true });
  }
}

/** Reports of the APIs in memory that expire with the clock. */
export class MemoryRuleReports implements RuleReports {
  /** While true, every call fails as if Redis were down. */
  down = false;
  /** Number of reports written. */
  written = 0;
  readonly #clock: Clock;
  readonly #reports = new Map<string, { readonly report: RuleReport; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async report(report: RuleReport, lifeMs: number): Promise<void> {
    this.#failIfDown();
    this.written++;
    this.#reports.set(report.processId, { report, untilMs: this.#clock.nowMs() + lifeMs });
  }

  async withdraw(processId: string): Promise<void> {
    this.#failIfDown();
    this.#reports.delete(processId);
  }

  async live(): Promise<readonly RuleReport[]> {
    this.#failIfDown();
    return [...this.#reports.values()]
      .filter(({ untilMs }) => untilMs > this.#clock.nowMs())
      .map(({ report }) => report);
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('redis', 'memory rule reports are down', { retryable: true });
  }
}
