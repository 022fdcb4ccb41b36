import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { Sale } from '../../../../src/core/sale.js';
import type { ReplayAnswer } from '../../../../src/operate/dead-letters/replay-dead-letter.js';
import { batchOf, purchasesOf } from '../../../helpers/sales.js';
import { DeadLetterWorld } from './dead-letter-world.js';

const WAIT_MS = 10_000;

describe('replay-dead-letter', () => {
  let world: DeadLetterWorld;
  let sale: Sale;
  beforeEach(async () => {
    world = new DeadLetterWorld();
    sale = await world.openSale({ limitPerBuyer: 2 });
  });

  const replay = (deadLetterId: string, signal?: AbortSignal): Promise<ReplayAnswer> =>
    world.admin.replay(deadLetterId, { actor: 'ann', waitMs: WAIT_MS, ...(signal === undefined ? {} : { signal }) });
  const pending = () => [...world.store.bucket({ ...sale, bucket: 0 }).pending.keys()];

  it('puts the batch into pending, publishes it, and waits until every purchase has its row [M8]', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1', 'u2*2']);
    const seen: unknown[] = [];
    world.onPublish = async (published) => {
      seen.push([published.body, pending(), world.deadLetter(deadLetterId).replayStartedAtMs !== null]);
      await world.work(published);
    };
    expect(await replay(deadLetterId)).to.deep.equal({ outcome: 'replayed', note: 'recorded: 2 live, 0 ended' });
    expect(seen).to.deep.equal([[batch.body, [batch.batchId], true]]);
    expect(world.deadLetter(deadLetterId)).to.include({
      state: 'replayed',
      replays: 1,
      note: 'recorded: 2 live, 0 ended',
    });
    expect(world.rowsOf(batch)).to.have.length(2);
    expect(pending()).to.deep.equal([]);
    expect(world.deadLetters.audited.map(({ actor, action }) => [actor, action])).to.deep.equal([
      ['ann', 'dead_letter.replay_begun'],
      ['ann', 'dead_letter.replayed'],
    ]);
  });

  it('never sends a forged message again, because a replay would sign it', async () => {
    const batch = await world.deducted(sale, ['u1']);
    const deadLetterId = await world.parkDeadLetter(batch, { reason: 'forged', isBatch: false });
    expect(await replay(deadLetterId)).to.include({ outcome: 'forged' });
    expect([world.publishedIds, pending()]).to.deep.equal([[], [batch.batchId]]);
    expect(world.deadLetter(deadLetterId)).to.include({ state: 'parked', replays: 0 });
  });

  it('waits for a slow worker and for every row', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1', 'u2']);
    let reads = 0;
    const find = world.mysql.findByPurchases.bind(world.mysql);
    world.mysql.findByPurchases = async (...asked) => {
      if (++reads === 4) await world.work(batch);
      const rows = await find(...asked);
      return reads === 4 ? rows.slice(1) : rows;
    };
    expect((await replay(deadLetterId)).outcome).to.equal('replayed');
    expect(reads).to.equal(5);
  });

  it('stays parked with a note if no worker records the batch in time', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1']);
    const beforeMs = world.clock.nowMs();
    expect((await replay(deadLetterId)).outcome).to.equal('unfinished');
    expect(world.clock.nowMs() - beforeMs).to.equal(WAIT_MS);
    expect(world.deadLetter(deadLetterId)).to.include({ state: 'parked', replays: 1 });
    expect(world.deadLetter(deadLetterId).note).to.contain('not every purchase has its row');
    expect(pending()).to.deep.equal([batch.batchId]);

    world.onPublish = (published) => world.work(published);
    expect((await replay(deadLetterId)).outcome).to.equal('replayed');
    expect(world.deadLetter(deadLetterId)).to.include({ state: 'replayed', replays: 2 });
  });

  it('publishes nothing again if an earlier replay was stopped after its rows were written', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1']);
    await replay(deadLetterId);
    await world.work(batch);
    const answer = await replay(deadLetterId);
    expect(answer).to.deep.equal({
      outcome: 'already_recorded',
      note: 'was already recorded: 1 live, 0 ended',
    });
    expect(world.publishedIds).to.deep.equal([batch.batchId]);
    expect(world.deadLetter(deadLetterId).state).to.equal('replayed');
  });

  it('marks Redis if the rows exist but were never marked', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1']);
    const [orderId] = await world.recorded(batch);
    expect((await replay(deadLetterId)).outcome).to.equal('already_recorded');
    expect(world.store.bucket({ ...sale, bucket: 0 }).requests.get('u1/k1')).to.deep.equal({
      state: 'ordered',
      orderId,
      quantity: 1,
    });
  });

  it('publishes the batch if a purchase has its row under another batch', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1', 'u2']);
    await world.recorded(batchOf(sale, purchasesOf('u1', 'u2')));
    expect((await replay(deadLetterId)).outcome).to.equal('replayed');
    expect(world.publishedIds).to.deep.equal([batch.batchId]);
    expect(pending()).to.deep.equal([batch.batchId]);
  });

  it('finds the batch recorded at the second of its two dead letters', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1']);
    // from a version that could park a batch twice
    const second = await world.parkDeadLetter(batch, { isBatch: false });
    world.onPublish = (published) => world.work(published);
    expect((await replay(deadLetterId)).outcome).to.equal('replayed');
    expect((await replay(second)).outcome).to.equal('already_recorded');
    expect(world.rowsOf(batch)).to.have.length(1);
  });

  it('refuses a body that is not a batch, and stores the reason', async () => {
    const { batch } = await world.parkedBatch(sale, ['u1']);
    for (const [body, why] of [
      ['{', /not JSON/],
      ['{"v":99}', /version 99/],
    ] as const) {
      const deadLetterId = await world.parkDeadLetter(batch, { body, reason: 'undecodable' });
      expect((await replay(deadLetterId)).outcome).to.equal('unreadable');
      expect(world.deadLetter(deadLetterId).note).to.match(why);
      expect(world.deadLetter(deadLetterId)).to.include({ state: 'parked', replays: 0 });
    }
    expect(world.publishedIds).to.deep.equal([]);
  });

  it('does not publish a batch without held units, because that would oversell', async () => {
    const aborted = batchOf(sale, purchasesOf('u1'));
    await world.store.resolve(aborted);
    for (const batch of [aborted, batchOf(sale, purchasesOf('u2'))]) {
      const deadLetterId = await world.parkDeadLetter(batch);
      expect((await replay(deadLetterId)).outcome).to.equal('not_held');
      expect(world.deadLetter(deadLetterId).note).to.match(/not held \((aborted|unknown)\)/);
      expect(world.deadLetter(deadLetterId).state).to.equal('parked');
    }
    expect(world.publishedIds).to.deep.equal([]);
    expect(pending()).to.deep.equal([]);
  });

  it('does not touch a closed or unknown dead letter', async () => {
    const { deadLetterId } = await world.parkedBatch(sale, ['u1']);
    await world.deadLetters.close(deadLetterId, 'bob', 'discarded', 'given up');
    expect(await replay(deadLetterId)).to.deep.equal({ outcome: 'already_closed', state: 'discarded' });
    expect(await replay('999')).to.deep.equal({ outcome: 'not_found' });
    expect(world.publishedIds).to.deep.equal([]);
  });

  it('leaves the batch in pending for the re-drive if the broker refuses it', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1']);
    world.broker.breakNext('publish_fails');
    const error = await replay(deadLetterId).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(OperationalError);
    expect(pending()).to.deep.equal([batch.batchId]);
    expect(world.deadLetter(deadLetterId)).to.include({ state: 'parked', replays: 1 });
  });

  it('publishes nothing if Redis does not answer', async () => {
    const { deadLetterId } = await world.parkedBatch(sale, ['u1']);
    world.store.breakNext('unpark_fails');
    expect(await replay(deadLetterId).catch((cause: unknown) => cause)).to.be.instanceOf(OperationalError);
    expect(world.publishedIds).to.deep.equal([]);
    expect(world.deadLetter(deadLetterId).state).to.equal('parked');
  });

  it('stops waiting when it is stopped', async () => {
    const { deadLetterId } = await world.parkedBatch(sale, ['u1']);
    const beforeMs = world.clock.nowMs();
    const stopping = new AbortController();
    world.onPublish = async () => stopping.abort();
    expect((await replay(deadLetterId, stopping.signal)).outcome).to.equal('unfinished');
    expect(world.clock.nowMs() - beforeMs).to.equal(0);
  });
});
