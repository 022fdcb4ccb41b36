import { expect } from 'chai';
import { hostname } from 'node:os';
import { Gauge, Registry } from 'prom-client';
import type { LiveProgram, OwnReport } from '../../../src/core/ports/program-reports.js';
import type { ReadyReport } from '../../../src/http/services.js';
import { reportProgram, type ReportProgramParts } from '../../../src/programs/report-program.js';
import { version } from '../../../src/process/version.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryProgramReports } from '../../helpers/memory/memory-program-reports.js';
import { silentLog } from '../../helpers/silent-log.js';

const READY: ReadyReport = { ready: true, dependencies: [{ name: 'redis', ok: true, detail: 'answers' }] };

describe('report of a program', () => {
  let clock: ManualClock;
  let reports: MemoryProgramReports;
  let registry: Registry;
  /** Called when the program would sleep until its next report. */
  let onPause: (nth: number) => Promise<void> | void;
  let handed: OwnReport[];
  beforeEach(() => {
    clock = new ManualClock();
    reports = new MemoryProgramReports(clock);
    registry = new Registry();
    handed = [];
  });

  const run = async (
    ready: () => Promise<ReadyReport> = async () => READY,
    log: ReportProgramParts['log'] = silentLog,
  ): Promise<void> => {
    const stop = new AbortController();
    let pauses = 0;
    const paused = {
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs(),
      sleep: async (ms: number) => {
        await onPause(pauses++);
        if (pauses === 3) stop.abort();
        clock.advance(ms);
      },
    };
    const onReport = (own: OwnReport): void => void handed.push(own);
    await reportProgram({ kind: 'keeper', reports, registry, ready, onReport, clock: paused, log }, stop.signal);
  };
  const only = async (): Promise<LiveProgram> => {
    const live = await reports.live();
    expect(live).to.have.length(1);
    return live[0] as LiveProgram;
  };

  it('announces the program repeatedly and withdraws it at the end', async () => {
    const ages: number[] = [];
    onPause = async () => {
      const { seenMsAgo, ...report } = await only();
      ages.push(seenMsAgo);
      expect(report).to.deep.equal({
        kind: 'keeper',
        id: `${hostname()}:${process.pid}`,
        version,
        ready: true,
        notReadySinceMs: null,
        problems: [],
        conditions: [],
        waiting: {},
      });
    };
    await run();
    expect(ages).to.deep.equal([0, 0, 0]);
    expect(await reports.live()).to.deep.equal([]);
  });

  it('reads faults from its own metrics, as an alert does', async () => {
    const overdue = new Gauge({ name: 'seckill_overdue', help: 'h', labelNames: ['state'], registers: [registry] });
    registry.setDefaultLabels({ program: 'keeper' });
    const seen: string[][] = [];
    onPause = async (nth) => {
      seen.push((await only()).conditions.map(({ name, severity }) => `${name} ${severity}`));
      overdue.set({ state: 'outbox' }, nth === 1 ? 0 : 7);
      overdue.set({ state: 'dead_letter' }, 1);
    };
    await run();
    expect(seen).to.deep.equal([
      [],
      ['SeckillOutboxStalled info', 'SeckillDeadLetters ticket'],
      ['SeckillDeadLetters ticket'],
    ]);
  });

  it('reports why it is not ready and since when, even if the readiness check fails', async () => {
    const broken = { name: 'mysql', ok: false, detail: 'does not answer' };
    const answers = [
      async () => READY,
      async () => ({ ready: false, dependencies: [...READY.dependencies, broken] }),
      () => Promise.reject(new Error('no way')),
    ];
    const [problems, since]: unknown[][] = [[], []];
    clock.advance(2000 - (clock.monotonicMs() % 2000)); // reports keep to multiples of their pause
    const startedMs = clock.nowMs();
    onPause = async () => {
      const report = await only();
      problems?.push(report.problems);
      since?.push(report.notReadySinceMs);
    };
    await run(() => (answers.shift() as () => Promise<ReadyReport>)());
    expect(problems).to.deep.equal([[], ['mysql: does not answer.'], ['no way']]);
    expect(since).to.deep.equal([null, startedMs + 2000, startedMs + 2000]);
  });

  it('continues after a bug and logs it now and then', async () => {
    const logged: unknown[] = [];
    const log = { ...silentLog, error: (...line: unknown[]) => void logged.push(line) };
    const bug = new TypeError('a bug');
    const said = reports.report.bind(reports);
    reports.report = () => Promise.reject(bug);
    let live = 0;
    onPause = async (nth) => {
      live = (await reports.live()).length;
      if (nth === 1) reports.report = said;
    };
    await run(async () => READY, log);
    expect(live).to.equal(1);
    expect(logged, 'twice within seconds').to.deep.equal([[{ err: bug }, 'a bug: could not report this process']]);
  });

  it('continues while Redis accepts no report, and logs the outage once', async () => {
    const logged: string[] = [];
    const note = (_fields: object, message: string): void => void logged.push(message);
    onPause = (nth) => {
      reports.down = nth === 0;
    };
    reports.down = true;
    const startedMs = clock.nowMs();
    await run(async () => READY, { ...silentLog, warn: note, info: note });
    expect(await reports.live()).to.deep.equal([]);
    const refusal = { why: 'memory program reports are down', sinceMs: startedMs };
    expect(handed.map((own) => own.refusal)).to.deep.equal([refusal, refusal, null]);
    expect(handed.map(({ report: { kind, ready } }) => [kind, ready])).to.deep.equal(Array(3).fill(['keeper', true]));
    expect(logged).to.deep.equal([
      'Redis takes no report of this process, so consoles of other apis do not show it',
      'Redis takes reports of this process again',
    ]);
  });
});
