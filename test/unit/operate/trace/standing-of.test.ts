import { expect } from 'chai';
import { lostIn } from '../../../helpers/sales.js';
import type { TracedOutboxRow } from '../../../../src/operate/trace/trace-repository.js';
import type { PurchaseEvidence } from '../../../../src/operate/trace/evidence.js';
import { standingOf } from '../../../../src/operate/trace/standing-of.js';
import { BATCH, jobOf, deadLetterOf, pendingEvidence, recordedEvidence, START_MS } from './evidence-world.js';

const stand = (evidence: PurchaseEvidence, redriveAfterMs = 30_000): [string, string] => {
  const { state, sentence } = standingOf(evidence, { redriveAfterMs });
  return [state, sentence];
};

describe('trace: state of a purchase', () => {
  it('names the worker, then the re-drive, for a held purchase in pending', () => {
    expect(stand(pendingEvidence({}))).to.deep.equal([
      'pending',
      'Held for 12 s, not recorded: a worker records it, or the keeper publishes it again after 30 s.',
    ]);
    expect(stand(pendingEvidence({}), 5000)[1]).to.equal(
      'Held for 12 s, not recorded: the keeper publishes it again, with growing pauses, until a worker records it.',
    );
    const batch = { batchId: 'batch-1', marker: 'deducted', body: null, pendingSinceMs: START_MS + 11_700 } as const;
    expect(stand(pendingEvidence({ store: { batch } }))[1]).to.match(/^Held for 0\.3 s.*no body left.*reconcile/);
  });

  it("names the dead letter and the operator's choices for a held, parked purchase", () => {
    const batch = { batchId: 'batch-1', marker: 'deducted', body: BATCH.body, pendingSinceMs: null } as const;
    const parked = (replayStartedAtMs: number | null) =>
      stand(pendingEvidence({ store: { batch }, deadLetters: [deadLetterOf({ replayStartedAtMs })] }));
    expect(parked(null)).to.deep.equal([
      'parked',
      'Parked as dead letter 17 at 2030-01-01T00:00:08.000Z, its units stay held. The last error: given up. ' +
        'Nothing happens until an operator runs `seckill dlq replay 17` or `discard`.',
    ]);
    expect(parked(START_MS + 9000)[1]).to.contain('A replay began and did not end.');
    const replayed = deadLetterOf({ state: 'replayed' });
    expect(stand(pendingEvidence({ store: { batch }, deadLetters: [replayed] }))[0], 'a closed letter').to.equal(
      'stray',
    );
  });

  it('names reconcile and its time for a purchase neither pending nor parked', () => {
    const batch = { batchId: 'batch-1', marker: 'deducted', body: null, pendingSinceMs: null } as const;
    const [state, sentence] = stand(pendingEvidence({ store: { batch }, jobs: [jobOf()] }));
    expect(state).to.equal('stray');
    expect(sentence).to.equal(
      'Held by batch batch-1, which is neither pending nor parked. Only reconcile can end it. ' +
        'Compensation job 3 is due at 2030-01-01T00:01:00.000Z.',
    );
    const givenUp = pendingEvidence({ store: { batch }, jobs: [jobOf({ state: 'failed_final' })] });
    expect(stand(givenUp)[1]).to.match(/job 3 failed finally; a person must decide\.$/);
  });

  it('names the store if only one store has the purchase', () => {
    const entry = { state: 'ordered', orderId: '42', quantity: 1 } as const;
    const [unrecorded, sentence] = stand(pendingEvidence({ store: { entry } }));
    expect([unrecorded, sentence]).to.deep.equal([
      'unrecorded',
      'Redis has the purchase as ordered, with order 42, but MySQL does not have this order. Reconcile reports it.',
    ]);
    const refused = { state: 'released', orderId: lostIn('batch-1'), quantity: 1 } as const;
    expect(stand(pendingEvidence({ store: { entry: refused } }))[1]).to.match(
      /^Batch batch-1 came after a repair and found no units/,
    );
    const deadLetters = [deadLetterOf()];
    expect(stand(pendingEvidence({ store: { entry: refused }, deadLetters }))[1]).to.match(
      /letter 17 .*it got no units.*dlq replay/,
    );
    expect(stand(pendingEvidence({ store: { entry: null }, deadLetters: [deadLetterOf()] }))[0]).to.equal('unknown');
  });

  it('describes an unpaid order before and after its deadline', () => {
    expect(stand(recordedEvidence('pending_payment', {}))).to.deep.equal([
      'pending_payment',
      'Order 42 has waited for its payment for 12 s: without payment it expires in 888 s, and its units go back.',
    ]);
    const late = recordedEvidence('pending_payment', { order: { expiresAtMs: START_MS + 9000 } });
    expect(stand(late)[1]).to.match(/it should have expired 3\.0 s ago; the next sweep of the keeper expires it\.$/);
    const entry = { state: 'held', batchId: 'batch-1', quantity: 1 } as const;
    expect(stand(recordedEvidence('pending_payment', { store: { entry } }))[1]).to.contain('the keeper marks it');
  });

  it('describes a paid order, its coupon and a due refund', () => {
    expect(stand(recordedEvidence('paid', {}))).to.deep.equal(['paid', 'Order 42 is paid: its coupon follows.']);
    const refund = {
      paymentId: 'p2',
      amountCents: 1999,
      atMs: START_MS,
      updatedAtMs: START_MS,
      reason: 'already_paid',
      state: 'due' as const,
    };
    const paidTwice = recordedEvidence('paid', { repository: { couponAtMs: START_MS, refunds: [refund] } });
    expect(stand(paidTwice)[1]).to.equal(
      'Order 42 is paid: nothing more happens. Payment p2 must be refunded: ' +
        'the keeper keeps asking the provider; a person must pay if the row says `refused`, or if no provider is configured.',
    );
    const refunded = recordedEvidence('paid', { repository: { refunds: [{ ...refund, state: 'refunded' }] } });
    expect(stand(refunded)[1]).to.not.contain('owed');
    expect(stand(recordedEvidence('refunded', { order: { refundedCents: 500 } }))[1]).to.match(
      /was paid, and 5\.00 EUR of 19\.99 EUR went back to the buyer: its units stay sold\.$/,
    );
  });

  it('says whether the units of an ended order are returned, on their way or stuck', () => {
    const released = { state: 'released', orderId: '42', quantity: 1 } as const;
    expect(stand(recordedEvidence('expired', { store: { entry: released } }))).to.deep.equal([
      'expired',
      'Order 42 is expired: its units are back; nothing more happens.',
    ]);
    const release: TracedOutboxRow = {
      outboxId: '9',
      attempts: 4,
      atMs: START_MS,
      availableAtMs: START_MS,
      doneAtMs: null,
      kind: 'release',
    };
    expect(stand(recordedEvidence('cancelled', { repository: { outboxRows: [release] } }))).to.deep.equal([
      'cancelled',
      'Order 42 is cancelled: outbox row 9 returns its units, after 4 attempts so far.',
    ]);
    const done = { ...release, doneAtMs: START_MS };
    const out = recordedEvidence('failed', { order: { reason: 'discarded' }, repository: { outboxRows: [done] } });
    expect(stand(out)[1]).to.equal(
      'Order 42 failed (discarded): its units are still held, and no outbox row returns them; reconcile reports it.',
    );
  });

  it('explains units that were lost after a 202, and reports uncertainty during a repair [R3]', () => {
    const lost = recordedEvidence('failed', { order: { reason: 'units_lost' }, store: { entry: null } });
    expect(stand(lost)).to.deep.equal([
      'failed',
      'Redis lost data after it accepted the buyer, and other buyers got the units before the batch was recorded. ' +
        'Order 42 failed (units_lost): Redis holds no units for it.',
    ]);
    const locked = { entry: null, batch: null, unsure: true };
    expect(stand(pendingEvidence({ store: locked }))).to.deep.equal([
      'repairing',
      'Redis may have lost data of its sale, which the keeper rebuilds within seconds. Run the trace again after that.',
    ]);
    expect(stand(recordedEvidence('expired', { store: locked }))[1]).to.contain('waits for a repair');
  });

  it('relies on MySQL alone for a retired sale', () => {
    const gone = { sale: null, entry: null, batch: null, unsure: false };
    const retired = (evidence: PurchaseEvidence): PurchaseEvidence => {
      return { ...evidence, sale: evidence.sale && { ...evidence.sale, state: 'closed', retiredAtMs: START_MS } };
    };
    expect(stand(retired(pendingEvidence({ store: gone })))).to.deep.equal([
      'unknown',
      'Sale 7 is retired, and request k1 of buyer u1 has no order in it.',
    ]);
    const paid = retired(recordedEvidence('paid', { store: gone, repository: { couponAtMs: START_MS } }));
    expect(stand(paid)).to.deep.equal(['paid', 'Order 42 is paid: nothing more happens.']);
    const expired = retired(recordedEvidence('expired', { store: gone }));
    expect(stand(expired)[1]).to.equal('Order 42 is expired: its sale is no longer in Redis.');
  });

  it('says that a closed sale lost by Redis is rebuilt when its buyer asks', () => {
    const one = pendingEvidence({ store: { entry: null, batch: null, unsure: true } });
    const closed = { ...one, sale: one.sale && { ...one.sale, state: 'closed' as const } };
    expect(stand(closed)[1]).to.contain('which the keeper rebuilds when its buyer asks, because the sale is closed');
  });
});
