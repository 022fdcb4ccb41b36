import { expect } from 'chai';
import { composeOrderId } from '../../../../src/core/order-id.js';
import type { PurchaseEvidence } from '../../../../src/operate/trace/evidence.js';
import { STAGES } from '../../../../src/contract/traces.js';
import { timelineOf, type TimelineStage } from '../../../../src/operate/trace/timeline-of.js';
import { deadLetterOf, outboxRow, pendingEvidence, recordedEvidence, START_MS } from './evidence-world.js';

const REDRIVE_AFTER_MS = 60_000;

describe('trace: timeline of seven stages', () => {
  const timeline = (evidence: PurchaseEvidence): TimelineStage[] =>
    timelineOf(evidence, { redriveAfterMs: REDRIVE_AFTER_MS });
  const seconds = (atMs: number | null): string => (atMs === null ? '-' : String((atMs - START_MS) / 1000));
  /** `<stage> <state> <at> <due>`, in seconds from the start. */
  const lines = (evidence: PurchaseEvidence): string[] =>
    timeline(evidence).map(
      ({ stage, state, atMs, dueAtMs }) => `${stage} ${state} ${seconds(atMs)} ${seconds(dueAtMs)}`,
    );

  it('shows every stage, always in order and with a sentence', () => {
    for (const evidence of [pendingEvidence({}), recordedEvidence('paid', {})]) {
      expect(timeline(evidence).map(({ stage }) => stage)).to.deep.equal([...STAGES]);
      for (const { text } of timeline(evidence)) expect(text).to.match(/^[A-Z].*\.$/);
    }
  });

  it('shows the units of a pending purchase as taken and its row as waiting', () => {
    expect(lines(pendingEvidence({}))).to.deep.equal([
      'half done - -',
      'deduct done 0 -',
      'commit unknown - -',
      'delivery waiting - 60',
      'row waiting - 60',
      'payment not_reached - -',
      'notification not_reached - -',
    ]);
  });

  it("takes times from the broker's messages", () => {
    const half = { kind: 'half', storedAtMs: START_MS - 20 } as const;
    const open = pendingEvidence({ broker: [half, { kind: 'half', storedAtMs: START_MS + 10_000 }] });
    expect(lines(open).slice(0, 3)).to.deep.equal(['half done -0.02 -', 'deduct done 0 -', 'commit waiting - 60']);
    const committed = { kind: 'committed', storedAtMs: START_MS + 5 } as const;
    expect(lines(pendingEvidence({ broker: [half, committed] }))[2]).to.equal('commit done 0.005 -');
    const inPart = pendingEvidence({ broker: [half], silentBrokers: ['broker-b: hangs'] });
    expect(lines(inPart).slice(0, 3)).to.deep.equal(['half done -0.02 -', 'deduct done 0 -', 'commit unknown - -']);
    const redriven = { kind: 'redriven', storedAtMs: START_MS + 61_000 } as const;
    expect(lines(pendingEvidence({ broker: [half, redriven] }))[2]).to.equal('commit done 61 -');
  });

  it('shows when an order was read, written and falls due', () => {
    const orderId = composeOrderId(START_MS + 90, 3, 'u1', 0);
    const evidence = recordedEvidence('pending_payment', {
      order: { orderId },
      repository: { outboxRows: [outboxRow({ doneAtMs: null, availableAtMs: START_MS + 700, attempts: 2 })] },
    });
    expect(lines(evidence)).to.deep.equal([
      'half done - -',
      'deduct done - -',
      'commit done - -',
      'delivery done 0.09 -',
      'row done 0.1 -',
      'payment waiting - 900.1',
      'notification waiting - 0.7',
    ]);
    const ofAnotherTime = recordedEvidence('pending_payment', { order: { orderId: '42' } });
    expect(lines(ofAnotherTime)[3], 'an id from another time proves nothing').to.equal('delivery done - -');
  });

  it('shows no waiting stage for a paid order with published events', () => {
    const moved = outboxRow({ outboxId: '2', kind: 'orders_moved', doneAtMs: START_MS + 2500 });
    const evidence = recordedEvidence('paid', {
      order: { paidAtMs: START_MS + 2000 },
      repository: { outboxRows: [outboxRow(), moved] },
    });
    expect(lines(evidence).slice(5)).to.deep.equal(['payment done 2 -', 'notification done 2.5 -']);
    expect(lines(recordedEvidence('paid', {})).at(-1), 'removed outbox rows').to.equal('notification done - -');
    const [part, whole] = [500, 1999].map((refundedCents) =>
      recordedEvidence('refunded', { order: { refundedCents } }),
    );
    expect(timeline(part as PurchaseEvidence)[5]?.text).to.equal('The order was paid, and refunded in part.');
    expect(timeline(whole as PurchaseEvidence)[5]?.text).to.equal('The order was paid, and refunded.');
  });

  it('shows an order that ended unpaid and a failed order', () => {
    expect(lines(recordedEvidence('expired', {}))[5]).to.equal('payment failed 5 -');
    const units = outboxRow({ kind: 'release', doneAtMs: null });
    const cancelled = recordedEvidence('cancelled', { repository: { outboxRows: [outboxRow(), units] } });
    expect(lines(cancelled).slice(5), 'a release is not a notification').to.deep.equal([
      'payment failed 5 -',
      'notification done 0.4 -',
    ]);
    const failed = recordedEvidence('failed', { order: { reason: 'units_lost' } });
    expect(lines(failed).slice(4, 6)).to.deep.equal(['row failed 0.1 -', 'payment not_reached - -']);
    expect(timeline(failed)[4]?.text).to.include('units_lost');
  });

  it('shows that a parked batch waits for an operator, and promises no time', () => {
    const evidence = pendingEvidence({
      store: { batch: { batchId: 'batch-1', marker: 'deducted', body: null, pendingSinceMs: null } },
      deadLetters: [deadLetterOf()],
    });
    expect(lines(evidence).slice(1, 5)).to.deep.equal([
      'deduct done - -',
      'commit done - -',
      'delivery failed 8 -',
      'row waiting - -',
    ]);
    expect(timeline(evidence)[4]?.text).to.include('dead letter 17');
  });

  it('shows a batch that was rolled back, an unknown purchase, and lost data in Redis', () => {
    const none = { entry: null, batch: null } as const;
    const batch = { batchId: 'batch-1', marker: 'aborted', body: null, pendingSinceMs: null } as const;
    expect(lines(pendingEvidence({ store: { entry: null, batch } }))).to.deep.equal([
      'half done - -',
      'deduct failed - -',
      'commit not_reached - -',
      'delivery not_reached - -',
      'row not_reached - -',
      'payment not_reached - -',
      'notification not_reached - -',
    ]);
    expect(lines(pendingEvidence({ store: none })).slice(0, 2)).to.deep.equal([
      'half unknown - -',
      'deduct not_reached - -',
    ]);
    expect(lines(pendingEvidence({ store: { ...none, unsure: true } }))[1]).to.equal('deduct unknown - -');
  });
});
