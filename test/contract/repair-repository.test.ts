import { expect } from 'chai';
import { newBatchId } from '../../src/core/batch.js';
import { composeOrderId } from '../../src/core/order-id.js';
import type { DeadLetterReason } from '../../src/core/ports/dead-letters.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { newSale, WORLDS, type RepositoryWorld } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

onEachWorld<RepositoryWorld>('contract RepairRepository', WORLDS, (world) => {
  const park = (
    saleId: string,
    batchId: string,
    body: string,
    reason: DeadLetterReason = 'retries_exhausted',
  ): Promise<unknown> =>
    world.deadLetters.park({
      messageId: newBatchId(),
      group: GROUPS.writer,
      originTopic: TOPICS.purchase,
      saleId,
      batchId,
      body,
      reason,
      detail: 'given up',
      attempts: 6,
    });

  it('raiseEpoch: only raises the epoch, by one or as requested, with an audit entry', async () => {
    const created = await world.sales.create(newSale());
    const { saleId } = created;
    expect(await world.repair.raiseEpoch(saleId, 1, 'ann')).to.deep.equal({ ...created, epoch: 2 });
    expect((await world.repair.raiseEpoch(saleId, 7, 'keeper'))?.epoch).to.equal(7);
    expect((await world.repair.raiseEpoch(saleId, 3, 'keeper'))?.epoch).to.equal(8);
    expect((await world.sales.find(saleId))?.epoch).to.equal(8);
    const entries = (await world.auditOf(`sale:${saleId}`)).slice(1);
    expect(entries.map(({ actor, action, before, after }) => [actor, action, before, after])).to.deep.equal([
      ['ann', 'sale.repaired', { epoch: 1 }, { epoch: 2 }],
      ['keeper', 'sale.repaired', { epoch: 2 }, { epoch: 7 }],
      ['keeper', 'sale.repaired', { epoch: 7 }, { epoch: 8 }],
    ]);
    expect(await world.repair.raiseEpoch('999999999999999999', 1, 'ann')).to.equal(null);
  });

  it('raiseEpoch: reshards the sale in the same transaction, unless its number of buckets has changed', async () => {
    const created = await world.sales.create(newSale());
    const { saleId } = created;
    const reshard = { from: created.buckets, to: created.buckets * 8 };
    const resharded = { ...created, epoch: 2, buckets: reshard.to };
    expect(await world.repair.raiseEpoch(saleId, 1, 'ann', reshard)).to.deep.equal(resharded);
    expect(await world.repair.raiseEpoch(saleId, 1, 'bob', reshard)).to.equal(null);
    expect(await world.sales.find(saleId)).to.deep.equal(resharded);
    const entries = (await world.auditOf(`sale:${saleId}`)).slice(1);
    expect(entries.map(({ actor, action, before, after }) => [actor, action, before, after])).to.deep.equal([
      ['ann', 'sale.resharded', { epoch: 1, buckets: reshard.from }, { epoch: 2, buckets: reshard.to }],
    ]);
  });

  it('lastOrderMs: returns when the last order of the sale was written, and null without orders', async () => {
    const { saleId } = await world.sales.create(newSale());
    expect(await world.repair.lastOrderMs(saleId)).to.equal(null);
    const atMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
    for (const [nth, mintedMs] of [atMs, atMs - 60_000].entries()) {
      const [purchase] = purchasesOf(`buyer-${nth}/k1`);
      if (purchase === undefined) throw new Error('no purchase');
      const batch = batchOf({ saleId, epoch: 1 }, [purchase]);
      const orders = [{ batch, purchase, failure: null, orderId: composeOrderId(mintedMs, 253, purchase.userId, nth) }];
      const terms = await world.orders.termsOf([saleId]);
      const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 60_000 };
      expect((await world.orders.write(plan)).outcome).to.equal('written');
    }
    expect(await world.repair.lastOrderMs(saleId)).to.equal(atMs);
  });

  it('raiseEpoch: gives each concurrent call its own epoch', async () => {
    const { saleId } = await world.sales.create(newSale());
    const raised = await Promise.all([1, 1, 1, 1].map(() => world.repair.raiseEpoch(saleId, 1, 'keeper')));
    expect(raised.map((sale) => sale?.epoch)).to.have.members([2, 3, 4, 5]);
  });

  it('claimReshard: allows one claim per open sale with this number of buckets', async () => {
    const { saleId, buckets } = await world.sales.create(newSale());
    const reshard = { from: buckets, to: buckets * 8 };
    const claim = (parts = reshard): Promise<boolean> => world.repair.claimReshard(saleId, parts, 'keeper', 12_345);
    expect(await claim(), 'a draft').to.equal(false);
    await world.sales.move(saleId, 'warm', 'ann');
    await world.sales.move(saleId, 'open', 'ann');
    expect(await claim({ from: buckets * 2, to: buckets * 8 })).to.equal(false);
    const claims = await Promise.all([1, 2, 3, 4].map(() => claim()));
    expect(claims.filter((mine) => mine)).to.have.length(1);
    const entries = (await world.auditOf(`sale:${saleId}`)).filter(({ action }) => action === 'sale.reshard_claimed');
    const after = { buckets: reshard.to, perSecond: 12_345 };
    expect(entries).to.deep.equal([
      { actor: 'keeper', action: 'sale.reshard_claimed', subject: `sale:${saleId}`, before: { buckets }, after },
    ]);
    await world.repair.raiseEpoch(saleId, 1, 'keeper', reshard);
    expect(await claim({ from: reshard.to, to: reshard.to * 2 }), 'not a second time').to.equal(false);
    expect(await world.repair.claimReshard('999999999999999999', reshard, 'keeper', 1)).to.equal(false);
  });

  it('parkedBatchesOf: returns each parked batch of the sale once, but no forged batch [R6, S10]', async () => {
    const { saleId } = await world.sales.create(newSale());
    const other = (await world.sales.create(newSale())).saleId;
    const [parked, decided, forged, foreign] = [saleId, saleId, saleId, other].map((id) =>
      batchOf({ saleId: id }, purchasesOf('ann')),
    );
    await park(saleId, parked!.batchId, parked!.body);
    await park(saleId, parked!.batchId, parked!.body);
    await park(saleId, decided!.batchId, decided!.body);
    await park(saleId, forged!.batchId, forged!.body, 'forged');
    await park(other, foreign!.batchId, foreign!.body);
    await park(saleId, 'b', '{"v":1,"batchId":"b","orders":["1"]}');
    const deadLetters = await world.deadLetters.list({ saleId, batchId: decided!.batchId }, { max: 1 });
    await world.deadLetters.close(deadLetters[0]!.deadLetterId, 'ann', 'discarded', 'given up');

    expect(await world.repair.parkedBatchesOf(saleId)).to.deep.equal([parked]);
  });
});
