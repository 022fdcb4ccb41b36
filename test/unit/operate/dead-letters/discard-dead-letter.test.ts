import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { Sale } from '../../../../src/core/sale.js';
import { batchOf, purchasesOf } from '../../../helpers/sales.js';
import { DeadLetterWorld } from './dead-letter-world.js';

describe('discard-dead-letter', () => {
  let world: DeadLetterWorld;
  let sale: Sale;
  beforeEach(async () => {
    world = new DeadLetterWorld();
    sale = await world.openSale({ stock: 100, limitPerBuyer: 2 });
  });

  const bucket = () => world.store.bucket({ ...sale, bucket: 0 });
  const sold = async () => (await world.mysql.find(sale.saleId))?.sold;

  it('fails each purchase as discarded and writes its release in the same transaction [C3]', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1', 'u2*2']);
    expect(await world.admin.discard(deadLetterId, 'ann')).to.deep.equal({
      outcome: 'discarded',
      note: '2 failed, 0 already had a row',
    });
    expect(world.rowsOf(batch).map(({ state, reason }) => [state, reason])).to.deep.equal([
      ['failed', 'discarded'],
      ['failed', 'discarded'],
    ]);
    expect([await sold(), bucket().unitsLeft]).to.deep.equal([0, 97]);
    await world.releaseUnits();
    expect(bucket().unitsLeft).to.equal(100);
    expect(bucket().unitsByBuyer().size).to.equal(0);
    expect(world.deadLetter(deadLetterId)).to.include({ state: 'discarded', note: '2 failed, 0 already had a row' });
    expect(world.deadLetters.audited.map(({ actor, action }) => [actor, action])).to.deep.equal([
      ['ann', 'dead_letter.discarded'],
    ]);
  });

  it('closes a forged message and leaves its purchases untouched', async () => {
    const batch = await world.deducted(sale, ['u1']);
    const deadLetterId = await world.parkDeadLetter(batch, { reason: 'forged', isBatch: false });
    expect(await world.admin.discard(deadLetterId, 'ann')).to.include({ outcome: 'discarded' });
    expect([world.mysql.allOrders, [...bucket().pending.keys()]]).to.deep.equal([[], [batch.batchId]]);
    expect(bucket().unitsLeft).to.equal(99);
  });

  it('returns no units of a purchase with an order, and marks the batch recorded', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1', 'u2']);
    const [orderId] = await world.recorded(batchOf(sale, purchasesOf('u1')));
    await world.admin.discard(deadLetterId, 'ann');
    await world.releaseUnits();
    expect(world.mysql.allOrders.map(({ userId, state }) => [userId, state])).to.have.deep.members([
      ['u1', 'pending_payment'],
      ['u2', 'failed'],
    ]);
    expect(world.rowsOf(batch)).to.have.length(1);
    expect(bucket().requests.get('u1/k1')).to.deep.equal({ state: 'ordered', orderId, quantity: 1 });
    expect([await sold(), bucket().unitsLeft]).to.deep.equal([1, 99]);
  });

  it('removes a batch from pending if an unfinished replay put it there', async () => {
    const { deadLetterId } = await world.parkedBatch(sale, ['u1']);
    await world.admin.replay(deadLetterId, { actor: 'ann', waitMs: 100 });
    expect(bucket().pending.size).to.equal(1);
    expect((await world.admin.discard(deadLetterId, 'ann')).outcome).to.equal('discarded');
    expect(bucket().pending.size).to.equal(0);
  });

  it('leaves a purchase as an order if a worker records it first', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1', 'u2']);
    const write = world.mysql.write.bind(world.mysql);
    world.mysql.write = async (plan) => {
      world.mysql.write = write;
      await world.recorded(batchOf(sale, purchasesOf('u2'), batch.batchId));
      return write(plan);
    };
    expect(await world.admin.discard(deadLetterId, 'ann')).to.deep.equal({
      outcome: 'discarded',
      note: '1 failed, 1 already had a row',
    });
    await world.releaseUnits();
    expect([await sold(), bucket().unitsLeft]).to.deep.equal([1, 99]);
  });

  it('writes one row and returns units once if repeated after a crash [C3]', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1']);
    world.deadLetters.breakMoves(1);
    expect(await world.admin.discard(deadLetterId, 'ann').catch((cause: unknown) => cause)).to.be.instanceOf(
      OperationalError,
    );
    await world.releaseUnits();
    expect(world.deadLetter(deadLetterId).state).to.equal('parked');
    expect(await world.admin.discard(deadLetterId, 'ann')).to.deep.equal({
      outcome: 'discarded',
      note: '0 failed, 1 already had a row',
    });
    await world.releaseUnits();
    expect(world.rowsOf(batch)).to.have.length(1);
    expect(bucket().unitsLeft).to.equal(100);
  });

  it('ignores a late delivery of the message', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1']);
    await world.admin.discard(deadLetterId, 'ann');
    await world.releaseUnits();
    await world.store.markRecorded([{ batch, orders: [] }]); // like a worker that finds every row
    expect(bucket().unitsLeft).to.equal(100);
    expect(await world.admin.replay(deadLetterId, { actor: 'ann', waitMs: 0 })).to.deep.equal({
      outcome: 'already_closed',
      state: 'discarded',
    });
  });

  it('closes a message without a batch, or with an unknown sale, without rows', async () => {
    const { batch } = await world.parkedBatch(sale, ['u1']);
    const garbage = await world.parkDeadLetter(batch, { body: '{' });
    const unknown = batchOf({ saleId: '999' }, purchasesOf('u1'));
    const nowhere = await world.parkDeadLetter(unknown, { reason: 'unknown_sale' });
    expect((await world.admin.discard(garbage, 'ann')).outcome).to.equal('discarded');
    expect((await world.admin.discard(nowhere, 'ann')).outcome).to.equal('discarded');
    expect(world.deadLetter(nowhere).note).to.contain('no sale 999');
    expect(world.mysql.allOrders).to.deep.equal([]);
  });

  it('writes a row but returns no units if Redis holds no units for the purchase', async () => {
    const batch = batchOf(sale, purchasesOf('u1'));
    const deadLetterId = await world.parkDeadLetter(batch);
    await world.admin.discard(deadLetterId, 'ann');
    await world.releaseUnits();
    expect(world.rowsOf(batch).map(({ reason }) => reason)).to.deep.equal(['discarded']);
    expect(bucket().unitsLeft).to.equal(100);
  });

  it('changes nothing and returns `contended` if conflicts never end', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1']);
    world.mysql.breakNext(...Array.from({ length: 8 }, () => 'write_again' as const));
    expect(await world.admin.discard(deadLetterId, 'ann')).to.deep.equal({ outcome: 'contended' });
    expect(world.deadLetter(deadLetterId).state).to.equal('parked');
    expect(world.rowsOf(batch)).to.deep.equal([]);
  });

  it('does not touch a closed or unknown dead letter', async () => {
    const { deadLetterId } = await world.parkedBatch(sale, ['u1']);
    await world.deadLetters.close(deadLetterId, 'bob', 'replayed', 'recorded');
    expect(await world.admin.discard(deadLetterId, 'ann')).to.deep.equal({
      outcome: 'already_closed',
      state: 'replayed',
    });
    expect(await world.admin.discard('999', 'ann')).to.deep.equal({ outcome: 'not_found' });
  });

  it('leaves a purchase to the batch that now holds it', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['u1', 'u2']);
    const { requests } = bucket();
    requests.delete('u1/k1'); // Redis lost the purchase, and its buyer sent the same key again
    const again = await world.deducted(sale, ['u1']);
    expect(await world.admin.discard(deadLetterId, 'ann')).to.deep.equal({
      outcome: 'discarded',
      note: '1 failed, 0 already had a row, 1 held by another batch',
    });
    expect(world.rowsOf(batch).map(({ userId }) => userId)).to.deep.equal(['u2']);
    await world.work(again);
    expect(world.mysql.allOrders.find(({ userId }) => userId === 'u1')).to.include({ state: 'pending_payment' });
  });
});
