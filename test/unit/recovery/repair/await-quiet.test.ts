import { expect } from 'chai';
import type { Sale } from '../../../../src/core/sale.js';
import { awaitQuiet } from '../../../../src/recovery/repair/await-quiet.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { saleOf } from '../../../helpers/sales.js';

const OPTIONS = { quietMs: 1500, waitMaxMs: 15_000 };

describe('await-quiet', () => {
  /** Waits for a sale that sells until `busyMs` have passed. @returns how long it took, and how often a lease was renewed */
  async function waited(busyMs: number, parts: Partial<Sale> = {}): Promise<{ tookMs: number; renewals: number }> {
    const clock = new ManualClock();
    const startedMs = clock.nowMs();
    const sale = saleOf(parts, startedMs);
    const find = async (): Promise<Sale> => ({ ...sale, sold: Math.min(clock.nowMs() - startedMs, busyMs) });
    let renewals = 0;
    await awaitQuiet({ ...sale, sold: 0 }, { sales: { find }, clock }, OPTIONS, async () => void renewals++);
    return { tookMs: clock.nowMs() - startedMs, renewals };
  }

  it('as long as workers write, and then as long as nothing must be written [R3]', async () => {
    expect((await waited(0)).tookMs).to.equal(1500);
    expect((await waited(4000)).tookMs).to.equal(5500);
  });

  it('not for ever, and the lease is renewed all the while [R3]', async () => {
    const { tookMs, renewals } = await waited(1_000_000);
    expect(tookMs).to.equal(15_000);
    expect(renewals).to.be.at.least(tookMs / 1000);
  });

  it('not at all for a sale that closed more than a day ago', async () => {
    const closesAtMs = new ManualClock().nowMs() - 25 * 3_600_000;
    expect((await waited(0, { state: 'closed', closesAtMs })).tookMs).to.equal(0);
    expect((await waited(0, { state: 'closed' })).tookMs).to.equal(1500);
  });
});
