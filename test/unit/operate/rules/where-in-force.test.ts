import { expect } from 'chai';
import { CliError } from '../../../../src/process/cli-error.js';
import {
  inForceFields,
  inForceSentence,
  whereInForce,
  type Found,
  type WhereInForce,
} from '../../../../src/operate/rules/where-in-force.js';
import type { RuleReport } from '../../../../src/core/ports/rules.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { MemoryRuleReports } from '../../../helpers/memory/memory-rule-repository.js';

const REFUSAL = { version: 3, reasons: ['tomorrow is not a known field'] };

describe('rule propagation', () => {
  let clock: ManualClock;
  let reports: MemoryRuleReports;
  let startedMs: number;
  beforeEach(() => {
    clock = new ManualClock();
    reports = new MemoryRuleReports(clock);
    startedMs = clock.monotonicMs();
  });

  const report = (pid: number, version: number | null, refused: RuleReport['refused'] = null, lifeMs = 60_000) =>
    reports.report({ processId: `p${pid}`, host: 'shop-1', pid, version, refused, canary: null }, lifeMs);
  const ask = (waitMs: number): Promise<WhereInForce> => whereInForce(3, { reports, clock }, waitMs);
  const waitedMs = (): number => clock.monotonicMs() - startedMs;
  const follows = ({ apis }: WhereInForce): boolean[] => apis.map((api) => api.follows);

  it('reports success when every API follows the rules or newer rules', async () => {
    await Promise.all([report(1, 3), report(2, 4)]);
    expect(await ask(5000)).to.include({ inForce: 'everywhere', version: 3 });
    expect(waitedMs()).to.equal(0);
  });

  it('waits for an API that follows late', async () => {
    await Promise.all([report(1, 3), report(2, 2)]);
    const asked = ask(5000);
    await report(2, 3);
    expect((await asked).inForce).to.equal('everywhere');
    expect(waitedMs()).to.be.within(1, 500);
  });

  it('waits only up to its maximum, and lists the APIs that do not follow first', async () => {
    await Promise.all([report(1, 3), report(2, 2)]);
    const found = await ask(5000);
    expect(found.inForce).to.equal('not_everywhere');
    expect(found.apis.map(({ pid }) => pid)).to.deep.equal([2, 1]);
    expect(waitedMs()).to.be.within(5000, 5200);
  });

  it('does not wait for an API that cannot use the rules', async () => {
    await Promise.all([report(1, 3), report(2, 2, REFUSAL), report(4, null, REFUSAL)]);
    const found = await ask(60_000);
    expect(found.inForce).to.equal('not_everywhere');
    expect(follows(found)).to.deep.equal([false, false, true]);
    expect(waitedMs()).to.equal(0);
  });

  it('waits for an API that refuses only an older version', async () => {
    await report(1, 1, { ...REFUSAL, version: 2 });
    const asked = ask(5000);
    await report(1, 3);
    expect((await asked).inForce).to.equal('everywhere');
  });

  it('drops a dead API after some seconds', async () => {
    await Promise.all([report(1, 3), report(2, 2, null, 3500)]);
    const found = await ask(5000);
    expect(found).to.include({ inForce: 'everywhere' });
    expect(found.apis).to.have.length(1);
  });

  it('reports that no API is running', async () => {
    expect(await ask(1000)).to.deep.equal({ inForce: 'nowhere', version: 3, apis: [] });
  });

  describe('command-line text', () => {
    const said = (found: Found): string => {
      try {
        return inForceSentence(found);
      } catch (error) {
        if (error instanceof CliError) return `fails: ${error.message}`;
        throw error;
      }
    };

    it('reports success only if every API follows or no API had to be asked', async () => {
      await report(1, 3);
      expect(said(await ask(0))).to.equal('Version 3 is in force in the only running api.');
      await report(2, 3);
      expect(said(await ask(0))).to.equal('Version 3 is in force in all 2 apis.');
      expect(said({ inForce: 'not_asked', version: 3 })).to.match(/^Version 3 is published; .*rules status/);
    });

    it('names each API, its version and the reason when an API does not follow', async () => {
      await Promise.all([report(1, 3), report(2, 2, REFUSAL), report(4, null, REFUSAL), report(5, 2)]);
      expect(said(await ask(0)).split('\n')).to.deep.equal([
        'fails: version 3 is published, but not in force everywhere:',
        '  shop-1 pid 2  follows version 2, and cannot use 3: tomorrow is not a known field',
        '  shop-1 pid 4  admits no buyer, and cannot use 3: tomorrow is not a known field',
        '  shop-1 pid 5  follows version 2',
        '  shop-1 pid 1  follows it',
      ]);
    });

    it('reports that no API is running, or that no API can be asked', () => {
      expect(said({ inForce: 'nowhere', version: 3, apis: [] })).to.match(/^fails: .*in force nowhere/);
      const away: Found = { inForce: 'unknown', version: 3, why: 'cannot reach Redis\u001b[2J' };
      expect(said(away))
        .to.match(/^fails: .*cannot tell where.*cannot reach Redis/)
        .and.not.contain('\u001b');
    });

    it('returns the same as JSON, without process ids', async () => {
      await report(2, 2, REFUSAL);
      expect(inForceFields(await ask(0))).to.deep.equal({
        version: 3,
        inForce: 'not_everywhere',
        apis: [{ host: 'shop-1', pid: 2, version: 2, follows: false, refused: REFUSAL }],
      });
    });
  });
});
