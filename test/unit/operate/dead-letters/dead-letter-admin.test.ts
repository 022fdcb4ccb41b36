import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { Sale } from '../../../../src/core/sale.js';
import type { DeadLetterResult, Pace } from '../../../../src/operate/dead-letters/dead-letter-admin.js';
import type { ReplayAnswer } from '../../../../src/operate/dead-letters/replay-dead-letter.js';
import { DeadLetterWorld } from './dead-letter-world.js';

const FAST: Pace = { perSecond: 1000, inFlightMax: 4 };
const DONE: ReplayAnswer = { outcome: 'replayed', note: 'recorded' };

describe('dead-letter-admin', () => {
  let world: DeadLetterWorld;
  let sale: Sale;
  beforeEach(async () => {
    world = new DeadLetterWorld();
    sale = await world.openSale({ limitPerBuyer: 1 });
  });

  const idsOf = async (deadLetters: AsyncIterable<{ deadLetterId: string }>): Promise<string[]> => {
    const ids: string[] = [];
    for await (const { deadLetterId } of deadLetters) ids.push(deadLetterId);
    return ids;
  };
  const park = async (count: number): Promise<string[]> => {
    const ids: string[] = [];
    for (let i = 0; i < count; i++) ids.push((await world.parkedBatch(sale, [`u${i}`])).deadLetterId);
    return ids;
  };
  const workThrough = async (
    ids: readonly string[],
    work: (deadLetterId: string) => Promise<ReplayAnswer>,
    pace = FAST,
    signal = new AbortController().signal,
  ): Promise<DeadLetterResult[]> => {
    const results: DeadLetterResult[] = [];
    await world.admin.workThrough(ids, work, pace, (result) => void results.push(result), signal);
    return results;
  };

  it('matching: reads pages from a given id until it has enough or reaches the end', async () => {
    const ids = await park(450);
    expect(await idsOf(world.admin.matching({}, 1000))).to.deep.equal(ids);
    expect(await idsOf(world.admin.matching({}, 250))).to.deep.equal(ids.slice(0, 250));
    expect(await idsOf(world.admin.matching({}, 1000, ids[399]))).to.deep.equal(ids.slice(400));
    expect(await idsOf(world.admin.matching({ saleId: '999' }, 1000))).to.deep.equal([]);
  });

  it('parkedMatching: returns dead letters of an earlier run first, and skips ended dead letters', async () => {
    const [a, b, c, d, e] = (await park(5)) as [string, string, string, string, string];
    await world.deadLetters.beginReplay(d, 'ann');
    await world.deadLetters.close(b, 'ann', 'discarded', 'given up');
    expect(await idsOf(world.admin.parkedMatching({}, 100))).to.deep.equal([d, a, c, e]);
    expect(await idsOf(world.admin.parkedMatching({}, 2))).to.deep.equal([d, a]);
    expect(await idsOf(world.admin.parkedMatching({}, 1))).to.deep.equal([d]);
  });

  it('parkedMatching: returns each dead letter once even if the run begins replays meanwhile', async () => {
    const ids = await park(450);
    const seen: string[] = [];
    for await (const { deadLetterId } of world.admin.parkedMatching({}, 1000)) {
      seen.push(deadLetterId);
      await world.deadLetters.beginReplay(deadLetterId, 'ann');
    }
    expect(seen).to.deep.equal(ids);
  });

  it('workThrough: limits concurrent actions and returns a result for each dead letter', async () => {
    let underWay = 0;
    let most = 0;
    const results = await workThrough(
      Array.from({ length: 50 }, (_, index) => String(index)),
      async () => {
        most = Math.max(most, ++underWay);
        await world.clock.sleep(20);
        underWay--;
        return DONE;
      },
    );
    expect(results).to.have.length(50);
    expect(most).to.equal(FAST.inFlightMax);
  });

  it('workThrough: begins actions no faster than its rate', async () => {
    const beganMs: number[] = [];
    const work = async (): Promise<ReplayAnswer> => {
      beganMs.push(world.clock.nowMs());
      return DONE;
    };
    await workThrough(
      Array.from({ length: 5 }, (_, index) => String(index)),
      work,
      { perSecond: 10, inFlightMax: 4 },
    );
    expect(beganMs.map((ms) => ms - (beganMs[0] as number))).to.deep.equal([0, 100, 200, 300, 400]);
  });

  it('workThrough: begins nothing after a fault, and finishes the work under way', async () => {
    const fault = new OperationalError('mysql', 'gone', { retryable: true });
    let begun = 0;
    const results = await workThrough(
      Array.from({ length: 50 }, (_, index) => String(index)),
      async (deadLetterId) => {
        begun++;
        if (deadLetterId === '10') throw fault;
        return DONE;
      },
    );
    expect(results.find((result) => 'fault' in result)).to.deep.equal({ deadLetterId: '10', fault });
    expect(begun).to.be.within(11, 14);
    expect(results).to.have.length(begun);
  });

  it('workThrough: begins nothing after it is stopped', async () => {
    const stopping = new AbortController();
    const work = async (deadLetterId: string): Promise<ReplayAnswer> => {
      if (deadLetterId === '5') stopping.abort();
      return DONE;
    };
    const results = await workThrough(
      Array.from({ length: 50 }, (_, index) => String(index)),
      work,
      FAST,
      stopping.signal,
    );
    expect(results.length).to.be.within(6, 9);
  });
});
