import { expect } from 'chai';
import { sealBatch } from '../../../../src/core/batch.js';
import type { Purchase } from '../../../../src/core/purchase.js';
import type { PurchaseEvidence } from '../../../../src/operate/trace/evidence.js';
import { stepsOf } from '../../../../src/operate/trace/steps-of.js';
import { BATCH, jobOf, deadLetterOf, pendingEvidence, recordedEvidence, START_MS } from './evidence-world.js';

/** `<seconds from the start, or now> <source> <what>` of every step. */
const lines = (evidence: PurchaseEvidence): string[] =>
  stepsOf(evidence).map(({ atMs, source, what }) => {
    const when = atMs === null ? 'now' : String((atMs - START_MS) / 1000);
    return `${when} ${source} ${what}`;
  });

describe('trace: steps', () => {
  it('show the creation, the deduct and the current state of a pending purchase', () => {
    expect(lines(pendingEvidence({}))).to.deep.equal([
      '-0.05 redis batch_formed',
      '0 redis deducted',
      'now redis marker',
      'now redis request',
      'now redis sale',
      'now mysql order',
      'now broker not_asked',
    ]);
    const sale = stepsOf(pendingEvidence({})).find(({ what }) => what === 'sale');
    expect(sale?.detail).to.equal('open, epoch 1, 8 units left; the buyer has 1');
  });

  it('show the retirement of a retired sale, and nothing from Redis', () => {
    const one = recordedEvidence('paid', { store: { sale: null, entry: null, batch: null } });
    const retiredAtMs = START_MS + 8000;
    const evidence = { ...one, sale: one.sale && { ...one.sale, state: 'closed' as const, retiredAtMs } };
    expect(lines(evidence)).to.include('8 mysql sale_retired');
    expect(lines(evidence).filter((line) => line.includes('redis'))).to.deep.equal([]);
  });

  it('show the error of a dead letter', () => {
    const detail = 'poison: ER_BAD_FIELD: the whole message';
    const steps = stepsOf(pendingEvidence({ deadLetters: [deadLetterOf({ detail })] }));
    expect(steps.find(({ what }) => what === 'parked')?.detail).to.include(detail);
  });

  it("show the units of all buckets and of the buyer's bucket", () => {
    const one = pendingEvidence({ store: { unitsLeft: 30 } });
    const evidence = { ...one, sale: one.sale && { ...one.sale, buckets: 4 } };
    const sale = stepsOf(evidence).find(({ what }) => what === 'sale');
    expect(sale?.detail).to.match(
      /^open, epoch 1, 30 units left in 4 buckets, 8 in bucket [0-3] of this buyer; the buyer has 1$/,
    );
  });

  it('show when an order expired, or why it failed', () => {
    expect(lines(recordedEvidence('expired', {}))).to.include('5 mysql expired');
    expect(lines(recordedEvidence('pending_payment', {}))).to.include('900.1 mysql payment_deadline');
    const failed = stepsOf(recordedEvidence('failed', { order: { reason: 'oversold_guard', expiresAtMs: null } }));
    expect(failed.find(({ what }) => what === 'failed')?.detail).to.match(/order 42: 1 for 19.99 EUR.*oversold_guard$/);
  });

  it('show metadata as one line of JSON, and amounts with their currency', () => {
    const metadata = { cart: '42', note: 'two\nlines' };
    const [u1, u2] = BATCH.purchases as [Purchase, Purchase];
    const { body } = sealBatch({
      ...BATCH,
      purchases: [
        { ...u1, metadata },
        { ...u2, metadata: { cart: '43' } },
      ],
    });
    const batch = { batchId: 'batch-1', marker: 'deducted', body, pendingSinceMs: START_MS } as const;
    const formed = stepsOf(pendingEvidence({ store: { batch } })).find(({ what }) => what === 'batch_formed');
    const shown = ', metadata {"cart":"42","note":"two\\nlines"}';
    expect(formed?.detail).to.equal(`batch-1: 2 purchases, epoch 1${shown}; on the clock of the api`);
    const recorded = stepsOf(recordedEvidence('paid', { order: { metadata } })).find(({ what }) => what === 'recorded');
    expect(recorded?.detail).to.equal(`order 42: 1 for 19.99 EUR, batch batch-1${shown}`);
  });

  it('show `claimed` instead of `deducted` for reacquired units, then `marked_recorded` [R4]', () => {
    const { batch } = pendingEvidence({}).store;
    const claimed = {
      batchId: 'batch-1',
      marker: 'claimed',
      pendingSinceMs: START_MS,
      body: batch?.body ?? null,
    } as const;
    expect(lines(pendingEvidence({ store: { batch: claimed } }))).to.include('0 redis claimed');
    const recorded = { ...claimed, body: null, pendingSinceMs: null };
    expect(lines(pendingEvidence({ store: { batch: recorded } }))).to.include('now redis marked_recorded');
  });

  it("show the broker's messages of the batch, or that the broker has none", () => {
    const broker = [
      { kind: 'half', storedAtMs: START_MS - 20 },
      { kind: 'committed', storedAtMs: START_MS + 10 },
      { kind: 'redriven', storedAtMs: START_MS + 60_000 },
    ] as const;
    expect(lines(pendingEvidence({ broker })).slice(0, 5)).to.deep.equal([
      '-0.05 redis batch_formed',
      '-0.02 broker half_stored',
      '0 redis deducted',
      '0.01 broker committed',
      '60 broker redriven',
    ]);
    expect(lines(pendingEvidence({ broker: [] }))).to.include('now broker messages');
    const silent = lines(pendingEvidence({ broker: [], silentBrokers: ['broker-b: hangs'] }));
    expect(silent).to.include('now broker not_asked').and.not.to.include('now broker messages');
  });

  it('show refunds, dead letters, jobs and the audit log', () => {
    const refund = { paymentId: 'p1', amountCents: 5, reason: 'order_expired', state: 'refunded' as const };
    const evidence: PurchaseEvidence = {
      ...pendingEvidence({
        deadLetters: [deadLetterOf({ replays: 1, replayStartedAtMs: START_MS + 9000, note: 'lost' })],
        jobs: [jobOf(), jobOf({ jobId: '4', state: 'compensated', updatedAtMs: START_MS + 11_000 })],
        repository: { refunds: [{ ...refund, atMs: START_MS + 6000, updatedAtMs: START_MS + 7000 }] },
      }),
      audit: [
        {
          auditId: '1',
          actor: 'ann',
          action: 'dead_letter.replay_begun',
          subject: 'dead_letter:17',
          before: {},
          after: {},
          atMs: START_MS + 9001,
        },
      ],
    };
    const found = lines(evidence);
    expect(found).to.include.members([
      '6 mysql refund_due',
      '7 mysql refunded',
      '8 mysql parked',
      '9 mysql replay_begun',
      '9.001 mysql audit',
      '10 mysql compensation',
      '11 mysql compensation',
      'now mysql dead_letter',
      'now mysql compensation',
    ]);
    const details = stepsOf(evidence).map(({ detail }) => detail);
    expect(details).to.include('ann: dead_letter.replay_begun dead_letter:17');
    expect(details).to.include('dead letter 17: parked, lost');
  });
});
