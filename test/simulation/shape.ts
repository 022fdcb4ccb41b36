import type { CallName } from './call-name.js';
import type { Metadata } from '../../src/core/metadata.js';
import { purchaseKey } from '../../src/core/purchase.js';
import type { Sale } from '../../src/core/sale.js';
import type { BatcherOptions } from '../../src/purchase/batcher.js';
import type { Rng } from './engine/rng.js';
import { START_MS } from './engine/scheduler.js';

/** The size and settings of a run, drawn from its seed. Runs are small, so that a test can do many of them. */
export interface Shape {
  readonly sale: Sale;
  readonly apis: number;
  readonly workers: number;
  readonly keepers: number;
  readonly buyers: number;
  readonly batch: BatcherOptions;
  /** Faults occur for this time from the start. Then the run recovers. */
  readonly chaosMs: number;
  /** All purchases begin within this time. */
  readonly rushMs: number;
  readonly paymentWindowMs: number;
  /** Half messages older than this are checked back. */
  readonly checkAfterMs: number;
  readonly redriveAfterMs: number;
  readonly markRecordedAfterMs: number;
  /** The keeper finishes transfers between buckets that are older than this. */
  readonly transferAfterMs: number;
  /** Pause between two runs of a keeper job. */
  readonly jobEveryMs: number;
  /** Pause between two runs of reconcile and compensation while faults occur. Null: they do not run. */
  readonly reconcileEveryMs: number | null;
  /** Reconcile judges no younger data. */
  readonly safeAgeMs: number;
  readonly compensateFirstMs: number;
  readonly outboxLeaseMs: number;
  /** Retries of a batch before it becomes a dead letter, often fewer than the real 5. */
  readonly retriesMax: number;
  readonly retryFirstMs: number;
  readonly invisibleMs: number;
  /** Interval for renewing deliveries during a write. Null: deliveries may expire during a slow transaction. */
  readonly renewMs: number | null;
  readonly slotLeaseMs: number;
  readonly soldOutLifeMs: number;
  /** Shares of buyers who cancel and who pay. */
  readonly cancels: number;
  readonly pays: number;
  /** Whether the owner pauses and closes the sale during the run. */
  readonly pauses: boolean;
  readonly closes: boolean;
  /** How and how often Redis dies and comes back. Null: never. */
  readonly restarts: { readonly kind: RestartKind; readonly times: number; readonly after: CallName } | null;
  readonly repairEveryMs: number;
  readonly quietMs: number;
  readonly repairWaitMaxMs: number;
  readonly repairLeaseMs: number;
  /** How often the sale is split into two or three times as many buckets. */
  readonly reshards: number;
}

/**
 * - `whole`: with all its data
 * - `tail`: without its last writes, as after a power cut or a fail-over
 * - `empty`: without any data
 */
const RESTART_KINDS = ['whole', 'tail', 'empty'] as const;
export type RestartKind = (typeof RESTART_KINDS)[number];

/**
 * Calls after which Redis may restart, between two steps of a purchase, a transfer or a repair. Calls that leave a
 * surviving batch are listed several times.
 */
const RESTART_AFTER = [
  'precheck',
  ...(['sendHalf', 'sendHalf', 'sendHalf', 'sendHalf'] as const),
  ...(['deduct', 'deduct', 'deduct', 'deduct'] as const),
  'resolve',
  ...(['commit', 'commit', 'commit', 'commit'] as const),
  'write',
  'markRecorded',
  'release',
  'reacquire',
  'transferOut',
  'transferIn',
  'endTransfer',
  'cancel',
  'park',
  'unpark',
  'statusOf',
  'lock',
  'raiseEpoch',
  'stage',
  'restoreMarker',
  'swap',
] as const satisfies readonly CallName[];

export const SALE_ID = '7';

/** Every second purchase has unique metadata, its own key. */
export const metadataOf = (purchase: { readonly userId: string; readonly requestId: string }): Metadata | null =>
  Number(purchase.userId.slice(1)) % 2 === 1 ? { of: purchaseKey(purchase) } : null;

/** Faults continue until batches that survive a loss return by a check-back or a second delivery. */
const AFTER_LOSS_MS = 30_000;

/** Whether a restart of Redis may lose writes. */
export const losesData = ({ restarts }: Pick<Shape, 'restarts'>): boolean =>
  restarts !== null && restarts.kind !== 'whole';

export function drawShape(rng: Rng): Shape {
  const chaosMs = rng.pick([500, 2_000, 6_000, 15_000]);
  const shape: Shape = {
    sale: drawSale(rng, chaosMs),
    apis: rng.pick([1, 2, 2, 3]),
    workers: rng.range(1, 2),
    keepers: rng.chance(0.4) ? 2 : 1,
    buyers: rng.range(2, 4),
    batch: {
      sizeMax: rng.pick([1, 2, 4, 12]),
      inFlightMax: rng.pick([1, 2]),
      gatherMs: 25,
      queueMax: rng.pick([2, 100]),
      waitMaxMs: rng.pick([500, 5_000]),
      roundsMax: rng.pick([2, 6]),
    },
    chaosMs,
    rushMs: rng.pick([1, 20, 1_500]),
    paymentWindowMs: rng.pick([1_500, 6_000, 900_000]),
    checkAfterMs: rng.pick([200, 2_000, 10_000]),
    redriveAfterMs: rng.pick([3_000, 15_000]),
    markRecordedAfterMs: rng.pick([1_000, 5_000]),
    transferAfterMs: rng.pick([0, 500, 3_000]),
    jobEveryMs: rng.pick([2_000, 5_000]),
    reconcileEveryMs: rng.chance(0.15) ? rng.pick([500, 4_000]) : null,
    safeAgeMs: rng.pick([1_000, 8_000, 30_000]),
    compensateFirstMs: rng.pick([50, 2_000]),
    outboxLeaseMs: rng.pick([2_000, 10_000]),
    retriesMax: rng.pick([0, 0, 1, 5]),
    retryFirstMs: rng.pick([100, 1_000]),
    invisibleMs: 10_000,
    renewMs: rng.chance(0.5) ? 3_000 : null,
    slotLeaseMs: rng.pick([9_000, 60_000]),
    soldOutLifeMs: rng.pick([100, 2_000]),
    cancels: rng.pick([0, 0.5]),
    pays: rng.pick([0, 0.5]),
    pauses: rng.chance(0.1),
    closes: rng.chance(0.1),
    restarts: drawRestarts(rng),
    repairEveryMs: rng.pick([100, 500]),
    quietMs: rng.pick([0, 200, 1_500]),
    repairWaitMaxMs: rng.pick([0, 3_000, 15_000]),
    repairLeaseMs: rng.pick([1_000, 15_000]),
    reshards: rng.chance(0.2) ? rng.range(1, 2) : 0,
  };
  return losesData(shape) ? { ...shape, chaosMs: Math.max(chaosMs, AFTER_LOSS_MS) } : shape;
}

function drawRestarts(rng: Rng): Shape['restarts'] {
  if (!rng.chance(0.25)) return null;
  return { kind: rng.pick(RESTART_KINDS), times: rng.pick([1, 1, 2, 3]), after: rng.pick(RESTART_AFTER) };
}

function drawSale(rng: Rng, chaosMs: number): Sale {
  const buckets = rng.chance(0.3) ? rng.range(2, 4) : 1;
  return {
    saleId: SALE_ID,
    sku: 'sku-1',
    title: 'A thing',
    priceCents: 1999,
    currency: 'EUR',
    warmBeforeMs: null,
    paymentWindowMs: null,
    stock: rng.range(1, 5),
    sold: 0,
    limitPerBuyer: rng.range(1, 2),
    buckets,
    opensAtMs: START_MS - 1,
    closesAtMs: START_MS + (rng.chance(0.1) ? Math.round(chaosMs / 2) : 24 * 3_600_000),
    state: 'open',
    epoch: 1,
    retiredAtMs: null,
  };
}
