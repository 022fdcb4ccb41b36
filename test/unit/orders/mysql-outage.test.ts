import { expect } from 'chai';
import sinon from 'sinon';
import { MysqlOutage } from '../../../src/orders/mysql-outage.js';
import { silentLog } from '../../helpers/silent-log.js';
import { mysqlDown, timerClock } from './worker-world.js';
import { partial } from '../../helpers/partial.js';
import type { WorkerMetrics } from '../../../src/orders/metrics.js';

const PROBE_EVERY_MS = 1000;
const NO_SIGNAL = new AbortController().signal;

describe('MySQL outage', () => {
  let timers: sinon.SinonFakeTimers;
  let probesMs: number[];
  let probeFails: boolean;
  /** Values of the gauge, one per change. */
  let gauge: boolean[];
  let outage: MysqlOutage;

  beforeEach(() => {
    timers = sinon.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    [probesMs, probeFails, gauge] = [[], true, []];
    const probe = async (): Promise<void> => {
      probesMs.push(Date.now());
      if (probeFails) throw mysqlDown('probe');
    };
    const metrics: WorkerMetrics = partial({ mysqlOutage: (isOut) => void gauge.push(isOut) });
    outage = new MysqlOutage({ probe, clock: timerClock, metrics, log: silentLog }, { probeEveryMs: PROBE_EVERY_MS });
  });
  afterEach(() => outage.shutdown());

  const elapse = (ms: number): Promise<number> => timers.tickAsync(ms);

  it('delays no loop and probes nothing while MySQL works', async () => {
    expect(await outage.untilOver(60_000, NO_SIGNAL)).to.equal(true);
    await elapse(3000);
    expect([outage.isOver, probesMs, gauge]).to.deep.equal([true, [], [false]]);
  });

  it('probes MySQL once per pause for all loops, and ends with a successful probe [D1]', async () => {
    for (let loop = 0; loop < 3; loop++) outage.begin(mysqlDown('write'));
    await elapse(3000);
    expect([outage.isOver, probesMs, gauge]).to.deep.equal([false, [1000, 2000, 3000], [false, true]]);
    probeFails = false;
    await elapse(5000);
    expect([outage.isOver, probesMs, gauge]).to.deep.equal([true, [1000, 2000, 3000, 4000], [false, true, false]]);
  });

  it('wakes every waiting loop when it ends, long before their time is up', async () => {
    outage.begin(mysqlDown('write'));
    probeFails = false;
    const waits = [outage.untilOver(60_000, NO_SIGNAL), outage.untilOver(30_000, NO_SIGNAL)];
    await elapse(PROBE_EVERY_MS);
    expect(Date.now()).to.equal(PROBE_EVERY_MS);
    expect(await Promise.all(waits)).to.deep.equal([true, true]);
  });

  it('returns false from a wait if its time is up or its signal is aborted', async () => {
    outage.begin(mysqlDown('write'));
    const timed = outage.untilOver(500, NO_SIGNAL);
    const stopping = new AbortController();
    const stopped = outage.untilOver(60_000, stopping.signal);
    await elapse(500);
    expect(await timed).to.equal(false);
    stopping.abort();
    expect(await stopped).to.equal(false);
    expect(await outage.untilOver(60_000, stopping.signal), 'aborted before').to.equal(false);
  });

  it('may begin again after its end', async () => {
    probeFails = false;
    outage.begin(mysqlDown('write'));
    await elapse(PROBE_EVERY_MS);
    expect(outage.isOver).to.equal(true);
    outage.begin(mysqlDown('write'));
    expect([outage.isOver, gauge]).to.deep.equal([false, [false, true, false, true]]);
    await elapse(PROBE_EVERY_MS);
    expect(outage.isOver).to.equal(true);
  });

  it('notices the start and the end of a MySQL outage even without messages [D1]', async () => {
    void outage.watch(20_000);
    probeFails = false;
    await elapse(39_000);
    probeFails = true;
    await elapse(3000);
    expect([outage.isOver, probesMs, gauge]).to.deep.equal([false, [20_000, 40_000, 41_000, 42_000], [false, true]]);
    probeFails = false;
    await elapse(1000);
    expect([outage.isOver, gauge]).to.deep.equal([true, [false, true, false]]);
    outage.shutdown();
    probeFails = true;
    await elapse(60_000);
    expect([outage.isOver, gauge]).to.deep.equal([true, [false, true, false]]);
  });

  it('stops probing after a shutdown', async () => {
    outage.begin(mysqlDown('write'));
    await elapse(PROBE_EVERY_MS);
    outage.shutdown();
    await elapse(5 * PROBE_EVERY_MS);
    expect(probesMs).to.deep.equal([1000]);
  });
});
