import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { DeadLetter } from '../../src/core/ports/dead-letters.js';
import { storedDeadLetter } from '../helpers/memory/memory-dead-letters.js';
import type { DeadLetterFilter, StoredDeadLetter } from '../../src/operate/dead-letters/dead-letter-store.js';
import { batchOf, freshSaleId, purchaseOf, purchasesOf } from '../helpers/sales.js';
import { WORLDS, type RepositoryWorld } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

const unique = (): string => randomBytes(12).toString('base64url');

onEachWorld<RepositoryWorld>('contract DeadLetterRepository', WORLDS, (world) => {
  let saleId: string;
  beforeEach(() => {
    saleId = freshSaleId();
  });

  const deadLetterOf = (parts: Partial<DeadLetter> = {}): DeadLetter => ({
    messageId: unique(),
    group: 'seckill-order-writer',
    originTopic: 'seckill-purchase',
    saleId,
    batchId: null,
    body: '{',
    reason: 'retries_exhausted',
    detail: 'the consumer group gave up on it',
    attempts: 8,
    ...parts,
  });
  /** Parks a batch of these purchases. @returns the stored dead letter */
  async function parked(texts: readonly string[], parts: Partial<DeadLetter> = {}): Promise<StoredDeadLetter> {
    const { batchId, body } = batchOf({ saleId }, purchasesOf(...texts));
    const deadLetter = deadLetterOf({ batchId, body, ...parts });
    expect(await world.deadLetters.park(deadLetter)).to.equal('parked');
    const found = (await world.deadLetters.list({ saleId: deadLetter.saleId as string }, { max: 100 })).at(-1);
    expect(found).to.include({ messageId: deadLetter.messageId });
    return (await world.deadLetters.find(found?.deadLetterId ?? '')) as StoredDeadLetter;
  }
  const idsOf = async (filter: DeadLetterFilter, max = 100): Promise<string[]> =>
    (await world.deadLetters.list({ saleId, ...filter }, { max })).map(({ deadLetterId }) => deadLetterId);

  it('park: stores one dead letter per message and group [M8]', async () => {
    const deadLetter = deadLetterOf();
    expect(await world.deadLetters.park(deadLetter)).to.equal('parked');
    expect(await world.deadLetters.park({ ...deadLetter, attempts: 2 })).to.equal('already_parked');
    expect(await world.deadLetters.park({ ...deadLetter, group: 'seckill-order-writer-redrive' })).to.equal('parked');
  });

  it('park: stores one dead letter per batch, and a new dead letter once the first is closed', async () => {
    const { batchId, body } = batchOf({ saleId }, purchasesOf('u1'));
    const letter = (): DeadLetter => deadLetterOf({ batchId, body, isBatch: true });
    expect(await world.deadLetters.park(letter())).to.equal('parked');
    expect(await world.deadLetters.park(letter())).to.equal('already_parked');
    const other = { ...letter(), isBatch: false, group: 'seckill-order-expirer' };
    expect(await world.deadLetters.park(other), 'a deadline of the same batch').to.equal('parked');
    const [first] = await idsOf({});
    await world.deadLetters.close(first ?? '', 'ann', 'replayed', 'recorded');
    expect(await world.deadLetters.park(letter())).to.equal('parked');
    expect(await idsOf({ state: 'parked', batchId })).to.have.length(2);
  });

  it('parkedBatches: returns each parked batch with its body in order of ids, after a given batch', async () => {
    const batches = ['u1', 'u2', 'u3'].map((user) => batchOf({ saleId }, purchasesOf(user)));
    batches.sort((a, b) => (a.batchId < b.batchId ? -1 : 1));
    for (const { batchId, body } of [...batches].reverse()) {
      await world.deadLetters.park(deadLetterOf({ batchId, body, isBatch: true }));
    }
    await world.deadLetters.park(deadLetterOf({ batchId: batches[0]?.batchId ?? '', isBatch: false }));
    const own = async (after: string) =>
      (await world.deadLetters.parkedBatches(after, 10_000)).filter(({ batchId }) =>
        batches.some((batch) => batch.batchId === batchId),
      );
    const all = await own('');
    expect(all.map(({ batchId, body }) => [batchId, body])).to.deep.equal(
      batches.map(({ batchId, body }) => [batchId, body]),
    );
    expect(await own(batches[1]?.batchId ?? '')).to.deep.equal(all.slice(2));
    expect(await world.deadLetters.parkedBatches(batches[0]?.batchId ?? '', 1)).to.have.length(1);
    await world.deadLetters.close(all[0]?.deadLetterId ?? '', 'ann', 'discarded', 'given up');
    expect(await own('')).to.deep.equal(all.slice(1));
  });

  it('park: accepts any message content, because an error would cause endless redelivery [M7]', async () => {
    const odd = `\u0000\ud800'"\\🎉${'x'.repeat(20_000)}`;
    const deadLetter = deadLetterOf({ body: odd, detail: odd, saleId: odd, batchId: odd, originTopic: odd });
    expect(await world.deadLetters.park(deadLetter)).to.equal('parked');
  });

  it('returns a dead letter with its body, exactly as it was parked', async () => {
    const beforeMs = world.clock.nowMs();
    const deadLetter = await parked(['u1*2'], { attempts: 6 });
    const { deadLetterId, messageId, batchId, detail, body, parkedAtMs } = deadLetter;
    const own = { deadLetterId, messageId, batchId, detail, body, parkedAtMs };
    expect(deadLetter).to.deep.equal(storedDeadLetter({ saleId, attempts: 6, ...own }));
    expect(JSON.parse(deadLetter.body)).to.deep.include({ saleId, purchases: [['u1', 'k1', 2]] });
    expect(deadLetter.parkedAtMs).to.be.within(beforeMs - 1000, world.clock.nowMs() + 1000);
    expect(await world.deadLetters.find('999999999999')).to.equal(null);
  });

  it('returns the dead letters of a batch and of a request, for a trace', async () => {
    const { deadLetterId, batchId, body, ...stored } = await parked([`u1/${unique()}`]);
    const traced = world.tracedDeadLetters;
    const { group, reason, detail, attempts, state, parkedAtMs, replays, replayStartedAtMs, note } = stored;
    const told = {
      deadLetterId,
      group,
      reason,
      detail,
      attempts,
      state,
      parkedAtMs,
      replays,
      replayStartedAtMs,
      note,
    };
    const requestId = (JSON.parse(body) as { purchases: string[][] }).purchases[0]?.[1] ?? '';
    for (const named of [{ batchId: batchId ?? '' }, { key: batchId ?? '' }, { key: requestId }]) {
      const [found, ...others] = await traced.list(named, { max: 5 });
      expect(found, JSON.stringify(named)).to.deep.include(told);
      expect(others).to.have.length(0);
    }
    expect(await traced.find(deadLetterId)).to.deep.include({ ...told, body });
    expect(await traced.find('999999999999')).to.equal(null);
  });

  it('does not mistake text in the metadata of another purchase for a request id', async () => {
    const metadata = { noted: 'noted', also: ',"noted",', last: '["noted","noted",1]' };
    const { body } = batchOf({ saleId }, [{ ...purchaseOf('u1/k1'), metadata }]);
    const { deadLetterId } = await parked(['u1/k1'], { body });
    expect(await idsOf({ key: 'noted' })).to.deep.equal([]);
    expect(await idsOf({ key: 'k1' })).to.include(deadLetterId);
  });

  it('finds parked dead letters by the trace id of a purchase, but not by text in metadata', async () => {
    const traceId = randomBytes(16).toString('hex');
    const other = randomBytes(16).toString('hex');
    const metadata = { noted: `,"${other}"]`, also: `[[0,"${other}"]]` };
    const { body } = batchOf({ saleId }, [purchaseOf('u1/k1'), { ...purchaseOf('u2/k2'), metadata, traceId }]);
    const one = await parked(['u1/k1'], { body });
    const closed = await parked(['u1/k1'], { body });
    await world.deadLetters.close(closed.deadLetterId, 'ann', 'discarded', 'given up');
    const tracedBy = async (text: string): Promise<string[]> =>
      (await world.tracedDeadLetters.list({ traceId: text }, { max: 100 })).map(({ deadLetterId }) => deadLetterId);
    expect(await tracedBy(traceId)).to.deep.equal([one.deadLetterId]);
    for (const text of [other, 'k2', '0'.repeat(32)]) expect(await tracedBy(text), text).to.deep.equal([]);
  });

  it('returns exactly the matches of each filter', async () => {
    const one = await parked(['u1/key-one', 'u2/key-two']);
    const two = await parked(['key-one/other'], { group: 'seckill-order-writer-redrive' });
    const three = await parked(['u3'], { reason: 'undecodable', body: '{', batchId: null });
    await world.deadLetters.close(two.deadLetterId, 'ann', 'discarded', 'given up');
    const all = [one, two, three].map(({ deadLetterId }) => deadLetterId);
    expect(await idsOf({})).to.deep.equal(all);
    expect(await idsOf({ group: 'seckill-order-writer-redrive' })).to.deep.equal([two.deadLetterId]);
    expect(await idsOf({ reason: 'undecodable' })).to.deep.equal([three.deadLetterId]);
    expect(await idsOf({ state: 'parked' })).to.deep.equal([one.deadLetterId, three.deadLetterId]);
    expect(await idsOf({ key: one.batchId as string })).to.deep.equal([one.deadLetterId]);
    expect(await idsOf({ batchId: one.batchId as string })).to.deep.equal([one.deadLetterId]);
    expect(await idsOf({ batchId: 'key-one' }), 'no request').to.deep.equal([]);
    expect(await idsOf({ key: 'key-two' })).to.deep.equal([one.deadLetterId]);
    expect(await idsOf({ key: 'key-one' }), 'a request, not the buyer of that name').to.deep.equal([one.deadLetterId]);
    expect(await idsOf({ key: 'key_one' }), 'no wildcard').to.deep.equal([]);
    expect(await idsOf({ key: 'other' }), 'the request of a dead letter that is no longer parked').to.deep.equal([]);
    expect(await idsOf({ saleId: freshSaleId() })).to.deep.equal([]);
    expect(await idsOf({ state: 'parked', reason: 'undecodable', key: 'key-two' })).to.deep.equal([]);
    expect(await world.deadLetters.count({ saleId })).to.equal(3);
    expect(await world.deadLetters.count({ saleId, state: 'discarded' })).to.equal(1);
  });

  it('filters by topic, by a literal part of the error, and by ids', async () => {
    const detail = 'ER_BAD_FIELD: 50% of `x_y`';
    const one = await parked(['u1'], { detail, originTopic: 'elsewhere' });
    const two = await parked(['u2']);
    expect(await idsOf({ text: '50% of `x_' })).to.deep.equal([one.deadLetterId]);
    expect(await idsOf({ text: 'er_bad' }), 'no other case').to.deep.equal([]);
    expect(await idsOf({ text: '5%f' }), 'no wildcard').to.deep.equal([]);
    expect(await idsOf({ originTopic: 'elsewhere' })).to.deep.equal([one.deadLetterId]);
    expect(await idsOf({ originTopic: 'else' })).to.deep.equal([]);
    expect(await idsOf({ ids: [two.deadLetterId, '999999999'] })).to.deep.equal([two.deadLetterId]);
    expect(await idsOf({ ids: [] })).to.deep.equal([]);
    expect(await world.deadLetters.count({ saleId, text: detail, originTopic: 'elsewhere' })).to.equal(1);
  });

  it('includes the time of `since` and excludes the time of `until`', async () => {
    const { deadLetterId, parkedAtMs } = await parked(['u1']);
    expect(await idsOf({ sinceMs: parkedAtMs })).to.deep.equal([deadLetterId]);
    expect(await idsOf({ sinceMs: parkedAtMs + 1 })).to.deep.equal([]);
    expect(await idsOf({ untilMs: parkedAtMs })).to.deep.equal([]);
    expect(await idsOf({ untilMs: parkedAtMs + 1 })).to.deep.equal([deadLetterId]);
  });

  it('starts a page after a given dead letter, and skips none when earlier dead letters change', async () => {
    const deadLetters = [await parked(['u1']), await parked(['u2']), await parked(['u3'])];
    const filter: DeadLetterFilter = { saleId, state: 'parked' };
    const first = await world.deadLetters.list(filter, { max: 2 });
    expect(first.map(({ deadLetterId }) => deadLetterId)).to.deep.equal(
      deadLetters.slice(0, 2).map((one) => one.deadLetterId),
    );
    for (const { deadLetterId } of first) await world.deadLetters.close(deadLetterId, 'ann', 'replayed', 'recorded');
    const next = await world.deadLetters.list(filter, { afterId: first.at(-1)?.deadLetterId ?? '', max: 2 });
    expect(next.map(({ deadLetterId }) => deadLetterId)).to.deep.equal([deadLetters[2]?.deadLetterId]);
    const whole = await world.deadLetters.list({ saleId }, { afterId: deadLetters[0]?.deadLetterId ?? '', max: 5 });
    expect(whole.map(({ deadLetterId }) => deadLetterId)).to.deep.equal(
      deadLetters.slice(1).map((one) => one.deadLetterId),
    );
  });

  it('begins, repeats and ends the replay of a parked dead letter, and audits each step', async () => {
    const { deadLetterId } = await parked(['u1']);
    expect(await idsOf({ replayBegun: true })).to.deep.equal([]);
    expect(await world.deadLetters.beginReplay(deadLetterId, 'ann')).to.equal('done');
    expect(await idsOf({ replayBegun: true })).to.deep.equal([deadLetterId]);
    expect(await idsOf({ replayBegun: false })).to.deep.equal([]);
    expect(await world.deadLetters.keepParked(deadLetterId, 'ann', 'not recorded yet')).to.equal('done');
    const stored = await world.deadLetters.find(deadLetterId);
    expect(stored).to.include({ state: 'parked', replays: 1, note: 'not recorded yet' });
    expect(stored?.replayStartedAtMs).to.be.a('number');
    await world.deadLetters.beginReplay(deadLetterId, 'bob');
    expect(await world.deadLetters.close(deadLetterId, 'bob', 'replayed', 'recorded')).to.equal('done');
    expect(await world.deadLetters.find(deadLetterId)).to.include({
      state: 'replayed',
      replays: 2,
      note: 'recorded',
    });

    const note = 'not recorded yet';
    const parkedWith = (replays: number) => ({ state: 'parked', replays });
    const subject = `dead_letter:${deadLetterId}`;
    const step = (actor: string, action: string, before: object, after: object) => ({
      actor,
      action: `dead_letter.${action}`,
      subject,
      before,
      after,
    });
    expect(await world.auditOf(subject)).to.deep.equal([
      step('ann', 'replay_begun', { ...parkedWith(0), note: null }, parkedWith(1)),
      step('ann', 'kept_parked', { ...parkedWith(1), note: null }, { ...parkedWith(1), note }),
      step('bob', 'replay_begun', { ...parkedWith(1), note }, parkedWith(2)),
      step('bob', 'replayed', { ...parkedWith(2), note }, { state: 'replayed', replays: 2, note: 'recorded' }),
    ]);
  });

  it('keeps a final state, and audits no later call', async () => {
    const { deadLetterId } = await parked(['u1']);
    expect(await world.deadLetters.close(deadLetterId, 'ann', 'discarded', 'given up')).to.equal('done');
    expect(await world.deadLetters.close(deadLetterId, 'bob', 'replayed', 'no')).to.equal('not_parked');
    expect(await world.deadLetters.beginReplay(deadLetterId, 'bob')).to.equal('not_parked');
    expect(await world.deadLetters.keepParked(deadLetterId, 'bob', 'no')).to.equal('not_parked');
    expect(await world.deadLetters.find(deadLetterId)).to.include({
      state: 'discarded',
      replays: 0,
      note: 'given up',
    });
    expect(await world.auditOf(`dead_letter:${deadLetterId}`)).to.have.length(1);
    expect(await world.deadLetters.beginReplay('999999999999', 'bob')).to.equal('not_found');
  });

  it('lets only one of two concurrent attempts end a dead letter', async () => {
    const { deadLetterId } = await parked(['u1']);
    const moves = await Promise.all([
      world.deadLetters.close(deadLetterId, 'ann', 'discarded', 'given up'),
      world.deadLetters.close(deadLetterId, 'bob', 'replayed', 'recorded'),
    ]);
    expect(moves).to.have.members(['done', 'not_parked']);
    expect(await world.auditOf(`dead_letter:${deadLetterId}`)).to.have.length(1);
  });

  it('shortens a note of any length to fit its column', async () => {
    const { deadLetterId } = await parked(['u1']);
    expect(await world.deadLetters.keepParked(deadLetterId, 'a'.repeat(200), 'n'.repeat(5000))).to.equal('done');
  });
});
