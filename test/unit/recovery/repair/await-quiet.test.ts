import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { WorkerProgress } from '../../../../src/core/ports/channels.js';
import type { Sale } from '../../../../src/core/sale.js';
import { silentLog } from '../../../helpers/silent-log.js';
import { awaitQuiet } from '../../../../src/recovery/repair/await-quiet.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { saleOf } from '../../../helpers/sales.js';

const busy = async (): Promise<string | null> => 'its last order is too recent';
const OPTIONS = { quietMs: 1500, waitMaxMs: 15_000 };

describe('await-quiet', () => {
  /** Waits for a sale that sells until `busyMs` have passed. @returns how long it took, and its lease renewals */
  async function waited(
    busyMs: number,
    parts: Partial<Sale> = {},
    whyBusy = busy,
  ): Promise<{ tookMs: number; renewals: number }> {
    const clock = new ManualClock();
    const startedMs = clock.nowMs();
    const sale = saleOf(parts, startedMs);
    const findSale = async (): Promise<Sale> => ({ ...sale, sold: Math.min(clock.nowMs() - startedMs, busyMs) });
    let renewals = 0;
    const ports = { findSale, whyBusy, progress: null, clock, log: silentLog };
    await awaitQuiet({ ...sale, sold: 0 }, ports, OPTIONS, async () => void renewals++);
    return { tookMs: clock.nowMs() - startedMs, renewals };
  }

  it('waits while workers write, and then for the quiet time [R3]', async () => {
    expect((await waited(0)).tookMs).to.equal(1500);
    expect((await waited(4000)).tookMs).to.equal(5500);
  });

  it('waits for a limited time and renews the lease [R3]', async () => {
    const { tookMs, renewals } = await waited(1_000_000);
    expect(tookMs).to.equal(15_000);
    expect(renewals).to.be.at.least(tookMs / 1000);
  });

  it('keeps the sale locked no longer if the clock is set back [R3, T12]', async () => {
    const clock = new ManualClock();
    const sale = saleOf({}, clock.nowMs());
    let reads = 0;
    const findSale = async (): Promise<Sale> => {
      if (++reads === 2) clock.step(-3_600_000);
      return sale;
    };
    const startedMs = clock.monotonicMs();
    await awaitQuiet(
      sale,
      { findSale, whyBusy: busy, progress: null, clock, log: silentLog },
      OPTIONS,
      async () => undefined,
    );
    expect(clock.monotonicMs() - startedMs).to.equal(1500);
  });

  describe('await-quiet with a broker that reports worker progress', () => {
    const ENDS = new Map([['q', 7]]);
    type Told = Omit<WorkerProgress, 'unreceivedSales'> & Partial<WorkerProgress>;
    /** A broker that by default cannot name the sales of unreceived messages. */
    const telling = (told: Told): WorkerProgress => ({ unreceivedSales: async () => null, ...told });
    /** @returns how long it took, ms, if nothing is written */
    async function waitedWith(
      progress: (nowMs: () => number) => Told,
      options = OPTIONS,
      whyBusy = busy,
      sale = saleOf(),
    ): Promise<number> {
      const clock = new ManualClock();
      const startedMs = clock.nowMs();
      const findSale = async (): Promise<Sale> => sale;
      const ports = {
        findSale,
        whyBusy,
        progress: telling(progress(() => clock.nowMs() - startedMs)),
        clock,
        log: silentLog,
      };
      await awaitQuiet(sale, ports, options, async () => undefined);
      return clock.nowMs() - startedMs;
    }
    const down = async (): Promise<never> => {
      throw new OperationalError('rocketmq', 'down', { retryable: true });
    };

    it('does not trust quiet while batches are queued behind batches of other sales [R3]', async () => {
      const tookMs = await waitedWith((nowMs) => ({
        ends: async () => ENDS,
        haveReceived: async (ends) => ends === ENDS && nowMs() >= 6000,
      }));
      expect(tookMs).to.equal(6000 + OPTIONS.quietMs);
    });

    it('waits until the workers have received everything, but for a limited time', async () => {
      expect(await waitedWith(() => ({ ends: async () => ENDS, haveReceived: async () => true }))).to.equal(1500);
      expect(await waitedWith(() => ({ ends: async () => ENDS, haveReceived: async () => false }))).to.equal(15_000);
    });

    it('does not take silence as proof of receipt once batches were missing [R3]', async () => {
      const tookMs = await waitedWith((nowMs) => ({
        ends: async () => ENDS,
        haveReceived: async () => (nowMs() >= 1000 && nowMs() < 5000 ? down() : nowMs() >= 6000),
      }));
      expect(tookMs).to.equal(6000 + OPTIONS.quietMs);
    });

    it('asks the broker a few times a second if no quiet time is set', async () => {
      let asked = 0;
      const progress = (nowMs: () => number): Told => ({
        ends: async () => ENDS,
        haveReceived: async () => {
          if (++asked > 100) throw new Error('it turns without a pause');
          return nowMs() >= 2000;
        },
      });
      expect(await waitedWith(progress, { ...OPTIONS, quietMs: 0 })).to.be.within(2000, 2250);
    });

    it('does not wait for an idle sale once the workers have received everything [R1, R3]', async () => {
      const idle = async (): Promise<string | null> => null;
      const progress = (haveReceived: (nowMs: number) => boolean) => (nowMs: () => number) => ({
        ends: async () => ENDS,
        haveReceived: async () => haveReceived(nowMs()),
      });
      expect(
        await waitedWith(
          progress(() => true),
          OPTIONS,
          idle,
        ),
      ).to.equal(0);
      expect(
        await waitedWith(
          progress((nowMs) => nowMs >= 1000),
          OPTIONS,
          idle,
        ),
        'received just now',
      ).to.equal(2500);
      expect(await waitedWith(() => ({ ends: down, haveReceived: down }), OPTIONS, idle), 'unknown').to.equal(1500);
      expect((await waited(0, {}, idle)).tookMs, 'no broker is known').to.equal(1500);
    });

    it('does not wait for an idle sale while only batches of other sales are queued [R1, R3]', async () => {
      const behind = (sales: ReadonlySet<string> | null) => () => ({
        ends: async () => ENDS,
        haveReceived: async () => false,
        unreceivedSales: async () => sales,
      });
      const sale = saleOf();
      const idle = async (): Promise<null> => null;
      const took = async (sales: ReadonlySet<string> | null, whyBusy = idle as typeof busy): Promise<number> =>
        waitedWith(behind(sales), OPTIONS, whyBusy, sale);
      expect(await took(new Set(['other']))).to.equal(0);
      expect(await took(new Set(['other', sale.saleId])), 'one is of the sale').to.equal(15_000);
      expect(await took(null), 'too many').to.equal(15_000);
      expect(await took(new Set(), busy), 'it is not idle').to.equal(15_000);
    });

    it('logs in one line why a sale waits', async () => {
      const whyOf = async (told: Told | null, whyBusy: typeof busy): Promise<unknown[]> => {
        const lines: unknown[] = [];
        const clock = new ManualClock();
        const sale = saleOf({}, clock.nowMs());
        const log = { ...silentLog, info: (fields: { why?: unknown }) => void lines.push(fields.why) };
        const progress = told === null ? null : telling(told);
        const ports = { findSale: async () => sale, whyBusy, progress, clock, log };
        await awaitQuiet(sale, ports, OPTIONS, async () => undefined);
        return lines;
      };
      const idle = async (): Promise<null> => null;
      const received = (all: boolean): Told => ({ ends: async () => ENDS, haveReceived: async () => all });
      expect(await whyOf(received(true), idle)).to.deep.equal([]);
      expect(await whyOf(received(true), busy)).to.deep.equal(['its last order is too recent']);
      expect(await whyOf(received(false), idle)).to.deep.equal(['the workers have not received all of its batches']);
      expect(await whyOf({ ends: down, haveReceived: down }, idle)).to.deep.equal(['down']);
      expect(await whyOf(null, idle)).to.deep.equal(['NAMESRV_ADDR is not set']);
    });

    it('relies on quiet if the broker does not answer', async () => {
      expect(await waitedWith(() => ({ ends: down, haveReceived: down }))).to.equal(1500);
      expect(await waitedWith(() => ({ ends: async () => ENDS, haveReceived: down }))).to.equal(1500);
    });
  });

  it('does not wait for a sale that closed more than a day ago', async () => {
    const closesAtMs = new ManualClock().nowMs() - 25 * 3_600_000;
    expect((await waited(0, { state: 'closed', closesAtMs })).tookMs).to.equal(0);
    expect((await waited(0, { state: 'closed' })).tookMs).to.equal(1500);
  });
});
