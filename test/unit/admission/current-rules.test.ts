import { expect } from 'chai';
import { CurrentRules, RulesLayer, rulesReadiness } from '../../../src/admission/rules/current-rules.js';
import { RuleAdmin } from '../../../src/operate/rules/rule-admin.js';
import { Bug } from '../../../src/core/errors.js';
import type { Log } from '../../../src/core/ports/log.js';
import {
  MemoryRuleBroadcast,
  MemoryRuleReports,
  MemoryRuleRepository,
} from '../../helpers/memory/memory-rule-repository.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';
import { noAdmissionMetrics } from '../../helpers/no-metrics.js';

const denying = (...deny: string[]) => ({ lists: { mode: 'on', users: { deny } } });

class RulesWorld {
  readonly clock = new SteppedClock();
  readonly repository = new MemoryRuleRepository();
  readonly broadcast = new MemoryRuleBroadcast();
  readonly reports = new MemoryRuleReports(this.clock);
  readonly logged: string[] = [];
  readonly taken: number[] = [];
  refused = 0;
  #processes = 0;
  readonly log: Log = {
    debug: () => undefined,
    info: (_fields, message) => void this.logged.push(`info ${message}`),
    warn: (_fields, message) => void this.logged.push(`warn ${message}`),
    error: (fields, message) => void this.logged.push(`error ${message} ${JSON.stringify(fields)}`),
  };
  readonly admin = new RuleAdmin({ repository: this.repository, broadcast: this.broadcast, log: this.log });
  readonly current = this.newCurrent();

  newCurrent(): CurrentRules {
    return new CurrentRules({
      broadcast: this.broadcast,
      repository: this.repository,
      reports: this.reports,
      reporter: { processId: `p${++this.#processes}`, host: 'shop-1', pid: 7 },
      clock: this.clock,
      log: this.log,
      metrics: {
        ...noAdmissionMetrics,
        rulesTaken: (version) => void this.taken.push(version),
        rulesRefused: () => void this.refused++,
      },
    });
  }

  get denied(): readonly string[] {
    return this.current.rules.lists.users.deny;
  }

  /** Runs one poll and everything that follows from it. */
  async poll(): Promise<void> {
    await this.current.runOnce();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Stores rules as another process does, without the RuleAdmin of this process. */
  async storeOnly(rules: object): Promise<void> {
    const { version } = await this.repository.current();
    await this.repository.store(rules, version, 'ann');
  }

  warnings(): string[] {
    return this.logged.filter((line) => !line.startsWith('info'));
  }
}

describe('CurrentRules', () => {
  let world: RulesWorld;
  beforeEach(async () => {
    world = new RulesWorld();
    await world.current.start();
    await world.poll();
  });

  it('reads only Redis, and turns all layers off, before the first rules exist', async () => {
    expect(world.current.isAnyOn).to.equal(false);
    const before = world.repository.reads;
    for (let polls = 0; polls < 30; polls++) {
      world.clock.advance(250);
      await world.poll();
    }
    expect(world.repository.reads - before, 'reads of MySQL in 7.5 s').to.equal(0);
    expect(world.broadcast.announced).to.equal(1);
  });

  it('applies published rules with the next read of Redis', async () => {
    expect(await world.admin.publish(denying('eve'), 0, 'ann')).to.deep.equal({
      outcome: 'published',
      version: 1,
      seenAtOnce: true,
    });
    await world.poll();
    expect(world.denied).to.deep.equal(['eve']);
    expect(world.current.isAnyOn).to.equal(true);
    await world.admin.publish({}, 1, 'ann');
    await world.poll();
    expect(world.current.isAnyOn).to.equal(false);
    expect(world.taken).to.deep.equal([0, 1, 2]);
  });

  it('applies the newest rules before the first buyer when a process starts', async () => {
    await world.admin.publish(denying('eve'), 0, 'ann');
    const late = world.newCurrent();
    await late.start();
    expect(late.rules.lists.users.deny).to.deep.equal(['eve']);
  });

  it('keeps its rules when new rules are bad, and applies later good rules', async () => {
    await world.admin.publish(denying('eve'), 0, 'ann');
    await world.poll();
    await world.broadcast.announce({ version: 2, rules: { lists: { mode: 'perhaps' }, tomorrow: {} }, canary: null });
    for (let polls = 0; polls < 3; polls++) await world.poll();
    expect(world.denied).to.deep.equal(['eve']);
    expect(world.current.isAnyOn).to.equal(true);
    expect(world.refused).to.equal(1);
    expect(world.warnings()).to.have.length(1);
    expect(world.warnings()[0]).to.contain('lists.mode').and.contain('tomorrow');
    await world.broadcast.announce({ version: 3, rules: denying('bob'), canary: null });
    await world.poll();
    expect(world.denied).to.deep.equal(['bob']);
  });

  it('stays ready with the last good rules when newer rules are unusable [S11]', async () => {
    await world.admin.publish(denying('eve'), 0, 'ann');
    await world.poll();
    await world.storeOnly({ ...denying('eve', 'bob'), tomorrow: {} });
    world.clock.advance(10_000);
    await world.poll();
    expect(world.denied).to.deep.equal(['eve']);
    const { ok, detail } = rulesReadiness(world.current.standing);
    expect(ok).to.equal(true);
    expect(detail).to.equal('version 1 is in force; version 2 cannot be used here: tomorrow is not a known field');
    await world.poll();
    expect(await world.reports.live()).to.deep.equal([
      { processId: 'p1', host: 'shop-1', pid: 7, ...world.current.standing, canary: null },
    ]);
    expect(world.current.standing).to.deep.include({ version: 1 }).and.have.nested.property('refused.version', 2);
  });

  it('judges all users by the rules in force when their canary is unreadable', async () => {
    await world.repository.store(denying('eve'), 0, 'ann', { canary: { percent: 1, tomorrow: 1 } });
    const late = world.newCurrent();
    await late.start();
    expect(late.of('ann')).to.equal(late.rules);
    expect([late.rules.lists.users.deny, late.standing]).to.deep.equal([['eve'], { version: 1, refused: null }]);
    expect(world.warnings()).to.have.length(1);
    expect(world.warnings()[0]).to.contain('canary.tomorrow');
  });

  it('admits no buyer in a starting process that cannot use the newest rules [S11]', async () => {
    await world.admin.publish(denying('eve'), 0, 'ann');
    await world.storeOnly({ ...denying('eve'), tomorrow: {} });
    const late = world.newCurrent();
    await late.start();
    const door = new RulesLayer(late);
    expect([late.isAnyOn, door.modeOf(), rulesReadiness(late.standing).ok]).to.deep.equal([true, 'on', false]);
    expect(rulesReadiness(late.standing).detail).to.match(
      /^no version is in force.*version 2 .*tomorrow is not a known field/,
    );
    for (const verdict of [door.anonymous(), door.buyer()]) expect(verdict.word).to.equal('unavailable');
    await world.admin.publish(denying('eve'), 2, 'ann');
    await late.runOnce();
    expect([door.modeOf(), rulesReadiness(late.standing).ok]).to.deep.equal(['off', true]);
    expect(late.rules.lists.users.deny).to.deep.equal(['eve']);
  });

  it('admits no buyer before it has read any rules', () => {
    const early = world.newCurrent();
    expect([early.isAnyOn, new RulesLayer(early).modeOf()]).to.deep.equal([true, 'on']);
  });

  it('reports its version each second, and withdraws the report when it stops', async () => {
    const before = world.reports.written;
    for (let polls = 0; polls < 12; polls++) {
      world.clock.advance(250);
      await world.poll();
    }
    expect(world.reports.written - before, 'in 3 s').to.equal(3);
    await world.admin.publish(denying('eve'), 0, 'ann');
    await world.poll();
    expect((await world.reports.live()).map(({ version }) => version)).to.deep.equal([1]);
    const stop = new AbortController();
    const polling = world.current.poll(stop.signal);
    stop.abort();
    await polling;
    expect(await world.reports.live()).to.deep.equal([]);
  });

  it('keeps its rules and reports nothing while Redis is down', async () => {
    await world.admin.publish(denying('eve'), 0, 'ann');
    await world.poll();
    world.broadcast.down = world.reports.down = true;
    for (let polls = 0; polls < 5; polls++) {
      world.clock.advance(1000);
      await world.poll();
    }
    expect(world.denied).to.deep.equal(['eve']);
    expect(world.warnings()).to.have.length(1);
    world.broadcast.down = world.reports.down = false;
    await world.poll();
    expect((await world.reports.live()).map(({ version }) => version)).to.deep.equal([1]);
  });

  it('never replaces newer rules with older rules', async () => {
    await world.admin.publish(denying('eve'), 0, 'ann');
    await world.admin.publish(denying('bob'), 1, 'ann');
    await world.poll();
    world.broadcast.forget();
    await world.broadcast.announce({ version: 1, rules: denying('eve'), canary: null });
    world.clock.advance(1000);
    await world.poll();
    expect(world.denied).to.deep.equal(['bob']);
  });

  it('announces the rules again from MySQL within a second when Redis has lost them', async () => {
    await world.admin.publish(denying('eve'), 0, 'ann');
    await world.poll();
    world.broadcast.forget();
    for (let polls = 0; polls < 4; polls++) {
      world.clock.advance(250);
      await world.poll();
    }
    expect(await world.broadcast.newerThan(0)).to.deep.include({ is: 'newer' });
    expect(world.denied).to.deep.equal(['eve']);
  });

  it('applies and announces rules after ten seconds when the publisher died between MySQL and Redis', async () => {
    await world.storeOnly(denying('eve'));
    world.clock.advance(9000);
    await world.poll();
    expect(world.denied).to.deep.equal([]);
    world.clock.advance(1000);
    await world.poll();
    expect(world.denied).to.deep.equal(['eve']);
    expect(await world.broadcast.newerThan(1)).to.deep.equal({ is: 'level' });
  });

  it('reads MySQL once a second and logs one line while Redis is down', async () => {
    world.broadcast.down = true;
    expect(await world.admin.publish(denying('eve'), 0, 'ann')).to.include({ outcome: 'published', seenAtOnce: false });
    const before = world.repository.reads;
    for (let polls = 0; polls < 20; polls++) {
      world.clock.advance(250);
      await world.poll();
    }
    expect(world.denied).to.deep.equal(['eve']);
    expect(world.repository.reads - before, 'reads of MySQL in 5 s').to.equal(5);
    expect(world.warnings().filter((line) => line.includes('once a second'))).to.have.length(1);
    world.broadcast.down = false;
    await world.poll();
    expect(world.logged.at(-1)).to.equal('info Redis announces new rules again');
  });

  it('keeps its rules while both servers are down, and logs each outage once', async () => {
    await world.admin.publish(denying('eve'), 0, 'ann');
    await world.poll();
    world.broadcast.down = world.repository.down = true;
    for (let polls = 0; polls < 20; polls++) {
      world.clock.advance(1000);
      await world.poll();
    }
    expect(world.denied).to.deep.equal(['eve']);
    expect(world.warnings()).to.have.length(2);
  });

  it('rejects the next run with a bug of a call in the background', async () => {
    const fails = () => Promise.reject(new Bug('it is broken'));
    const ended = (current: CurrentRules) => current.runOnce().then(() => 'done', String);
    const after = async (breakIt: () => void): Promise<string[]> => {
      world = new RulesWorld();
      await world.current.start();
      breakIt();
      const first = await ended(world.current);
      await new Promise((resolve) => setImmediate(resolve));
      return [first, await ended(world.current)];
    };
    const bug = 'Bug: it is broken';
    expect(await after(() => (world.broadcast.newerThan = fails))).to.deep.equal([bug, bug]);
    expect(await after(() => (world.broadcast.announce = fails))).to.deep.equal(['done', bug]);
    expect(await after(() => (world.repository.current = fails))).to.deep.equal(['done', bug]);
    expect(await after(() => (world.reports.report = fails))).to.deep.equal(['done', bug]);
    expect(world.warnings()).to.deep.equal([]);
  });

  it('ends the loop with a bug of the last read', async () => {
    world.clock.advance(1000);
    world.reports.report = () => Promise.reject(new Bug('it is broken'));
    const stop = new AbortController();
    const looking = world.current.poll(stop.signal);
    stop.abort();
    expect(await looking.catch(String)).to.equal('Bug: it is broken');
  });

  it('reads Redis without delay while MySQL hangs', async () => {
    let answer: () => void = () => undefined;
    let asked = 0;
    const hanging = async () => {
      asked++;
      await new Promise<void>((resolve) => (answer = resolve));
      return { version: 0, rules: {}, canary: null };
    };
    world.repository.current = hanging;
    world.clock.advance(10_000);
    await world.poll();
    await world.broadcast.announce({ version: 1, rules: denying('eve'), canary: null });
    world.clock.advance(10_000);
    await world.poll();
    expect(world.denied).to.deep.equal(['eve']);
    expect(asked).to.equal(1);
    answer();
  });

  it('reads four times a second until it stops', async () => {
    const stop = new AbortController();
    const looking = world.current.poll(stop.signal);
    await world.admin.publish(denying('eve'), 0, 'ann');
    for (let steps = 0; steps < 2; steps++) {
      await new Promise((resolve) => setImmediate(resolve));
      world.clock.advance(250);
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.denied).to.deep.equal(['eve']);
    stop.abort();
    await looking;
  });
});

describe('rule admin', () => {
  it('shows rules with their defaults, and unreadable rules unchanged', async () => {
    const world = new RulesWorld();
    await world.storeOnly({ lists: { mode: 'on' } });
    expect((await world.admin.show()).rules)
      .to.have.nested.property('lists.users.deny')
      .that.deep.equals([]);
    await world.storeOnly({ lists: { mode: 'on', gone: 1 } });
    expect(await world.admin.show()).to.deep.equal({ version: 2, rules: { lists: { mode: 'on', gone: 1 } } });
  });
});
