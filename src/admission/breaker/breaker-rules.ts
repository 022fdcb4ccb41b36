import type { Dependency } from '../../core/errors.js';
import { z } from 'zod';
import { mode } from '../layer.js';

/** Dependencies with a breaker. */
export const DEPENDENCIES = ['redis', 'rocketmq', 'mysql'] as const satisfies readonly Dependency[];

const share = z.number().min(0).max(1);

/** A signal counts 0 up to `from`, 1 from `to` on, evenly in between. */
const ramp = (from: number, to: number, unit: z.ZodNumber) =>
  z
    .strictObject({ from: unit.default(from), to: unit.default(to) })
    .refine((one) => one.from < one.to, { error: 'must have from below to' })
    .prefault({});

const weights = z.strictObject({
  rate: share.default(0.2),
  failures: share.default(0.6),
  latency: share.default(0.4),
});

const rate = z.strictObject({
  /** Calls per second as a multiple of what was learned. */
  ramp: ramp(2, 5, z.number().min(1).max(1000)),
  /** A usual rate below this counts as this: the first buyers of a morning are no crowd. */
  floorPerSecond: z.number().min(1).max(1_000_000).default(100),
  /** After so long, half of the usual rate comes from newer calls. */
  halfLifeMs: z.int().min(1000).max(86_400_000).default(300_000),
  /** A rate learned in less time does not count yet. */
  warmUpMs: z.int().min(0).max(3_600_000).default(60_000),
});

const probe = z
  .strictObject({
    /** From opening to the trial; twice as long after each trial that fails. */
    firstMs: z.int().min(10).max(60_000).default(1000),
    /** The longest wait. */
    capMs: z.int().min(10).max(600_000).default(30_000),
    /** A wait is up to this share shorter, so that processes do not try together. */
    jitter: share.default(0.2),
    /** A breaker that opens again within this time of closing continues with its longer waits. */
    calmMs: z.int().min(0).max(600_000).default(30_000),
  })
  .refine((one) => one.firstMs <= one.capMs, { error: 'must have firstMs of at most capMs' });

const trial = z.strictObject({
  /** So many calls in a row must go well, and so many requests are let through for it. */
  calls: z.int().min(1).max(1000).default(5),
  /** A trial without a result lets the next requests through after this time. */
  waitMs: z.int().min(10).max(60_000).default(1000),
});

/** The breaker of every dependency. */
export const breakerRules = z
  .strictObject({
    mode: mode.default('off'),
    /** Older calls do not count. */
    windowMs: z.int().min(1000).max(600_000).default(10_000),
    /** With fewer calls in the window it stays closed. */
    callsMin: z.int().min(1).max(1_000_000).default(50),
    /** It opens from this score on. */
    openAt: z.number().gt(0).max(1).default(0.5),
    weights: weights.prefault({}),
    rate: rate.prefault({}),
    /** Share of the calls that failed. */
    failures: ramp(0.1, 0.5, share),
    /** 95th percentile of latency, ms. */
    latencyMs: ramp(100, 1000, z.number().min(0).max(60_000)),
    probe: probe.prefault({}),
    trial: trial.prefault({}),
    /** All processes treat a breaker as open when this share of the live ones has it open; two at least, unless there is only one. */
    quorumShare: z.number().gt(0).max(1).default(0.5),
  })
  .refine((one) => one.weights.rate < one.openAt, {
    error: 'must be below openAt: a high rate alone is normal in a sale',
    path: ['weights', 'rate'],
  })
  .refine(({ weights: { rate, failures, latency }, openAt }) => rate + failures + latency >= openAt, {
    error: 'must add up to openAt or more: the breaker would never open',
    path: ['weights'],
  });

export type BreakerRules = z.infer<typeof breakerRules>;
