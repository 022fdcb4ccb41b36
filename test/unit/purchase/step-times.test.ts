import { expect } from 'chai';
import type { HalfMessage } from '../../../src/core/ports/channels.js';
import type { PlaceBatchPorts } from '../../../src/purchase/place-batch.js';
import { withStepTimes } from '../../../src/purchase/batch-steps.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';

describe('times of the steps of a batch', () => {
  it('record the time of each step at another server and pass its answer on', async () => {
    const clock = new ManualClock();
    const took: [step: string, ms: number][] = [];
    const after = <T>(ms: number, value: T): Promise<T> => {
      clock.advance(ms);
      return Promise.resolve(value);
    };
    const half: HalfMessage = { commit: () => after(4, undefined), rollback: () => after(5, true) };
    let sent: HalfMessage | 'unavailable' = half;
    const ports = {
      store: {
        precheck: () => after(1, 'prechecked'),
        deduct: () => after(3, 'deducted'),
        resolve: () => after(9, 'aborted'),
      },
      channel: { sendHalf: () => after(2, sent) },
    } as unknown as PlaceBatchPorts;
    const { store, channel } = withStepTimes(ports, clock, (step, tookMs) => took.push([step, tookMs]));
    const batch = {} as never;
    expect(await store.precheck({} as never, [])).to.equal('prechecked');
    const timed = await channel.sendHalf(batch);
    expect(await store.deduct(batch)).to.equal('deducted');
    expect(await store.resolve(batch)).to.equal('aborted');
    await (timed as HalfMessage).commit();
    expect(await (timed as HalfMessage).rollback()).to.equal(true);
    sent = 'unavailable';
    expect(await channel.sendHalf(batch)).to.equal('unavailable');
    expect(took).to.deep.equal([
      ['precheck', 1],
      ['half', 2],
      ['deduct', 3],
      ['commit', 4],
      ['rollback', 5],
      ['half', 2],
    ]);
  });

  it('record no time for a failed step and pass its error on', async () => {
    const took: unknown[] = [];
    const ports = { store: { precheck: () => Promise.reject(new Error('away')) } } as unknown as PlaceBatchPorts;
    const { store } = withStepTimes(ports, new ManualClock(), (step) => took.push(step));
    expect(await store.precheck({} as never, []).catch((error: Error) => error.message)).to.equal('away');
    expect(took).to.deep.equal([]);
  });
});
