import type { Dependency } from '../../core/errors.js';
import { z } from 'zod';
import { mode } from '../layer.js';

/** Dependencies with a breaker. */
export const DEPENDENCIES = ['redis', 'rocketmq', 'mysql'] as const satisfies readonly Dependency[];

const share = z.number().min(0).max(1);

/** Reads the ramp of a signal, which rises evenly from 0 at `from` to 1 at `to`. */
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
  /** Calls per second as a multiple of the learned rate. */
  ramp: ramp(2, 5, z.number().min(1).max(1000)),
  /** The least value of the usual rate: the first buyers of a morning are no crowd. */
  floorPerSecond: z.number().min(1).max(1_000_000).default(100),
  /** Time after which newer calls make up half of the usual rate. */
  halfLifeMs: z.int().min(1000).max(86_400_000).default(300_000),
  /** Minimum learning time before the rate counts. */
  warmUpMs: z.int().min(0).max(3_600_000).default(60_000),
});

const probe = z
  .strictObject({
    /** Time between opening and the trial. Doubles after each failed trial. */
    firstMs: z.int().min(10).max(60_000).default(1000),
    /** The longest wait. */
    capMs: z.int().min(10).max(600_000).default(30_000),
    /** The share by which a wait may be shorter, so that processes do not try together. */
    jitter: share.default(0.2),
    /** A breaker that opens again within this time of closing continues with its longer waits. */
    calmMs: z.int().min(0).max(600_000).default(30_000),
  })
  .refine((one) => one.firstMs <= one.capMs, { error: 'must have firstMs of at most capMs' });

const trial = z.strictObject({
  /** The number of requests admitted to a trial. As many calls in a row must succeed. */
  calls: z.int().min(1).max(1000).default(5),
  /** Time after which a trial without a result admits the next requests. */
  waitMs: z.int().min(10).max(60_000).default(1000),
});

/** The breaker of every dependency. */
export const breakerRules = z
  .strictObject({
    mode: mode.default('off'),
    /** Length of the window. Older calls do not count. */
    windowMs: z.int().min(1000).max(600_000).default(10_000),
    /** Minimum number of calls in the window. The breaker stays closed below it. */
    callsMin: z.int().min(1).max(1_000_000).default(50),
    /** The score at which the breaker opens. */
    openAt: z.number().gt(0).max(1).default(0.5),
    weights: weights.prefault({}),
    rate: rate.prefault({}),
    /** Share of the calls that failed. */
    failures: ramp(0.1, 0.5, share),
    /** 95th percentile of latency, ms. */
    latencyMs: ramp(100, 1000, z.number().min(0).max(60_000)),
    probe: probe.prefault({}),
    trial: trial.prefault({}),
    /**
     * The share of live processes whose open breaker makes all processes treat it as open. At least two processes are
     * needed, unless only one is live.
     */
    quorumShare: z.number().gt(0).max(1).default(0.5),
  })
  .refine((one) => one.weights.rate < one.openAt, {
    error: 'must be below openAt: a high rate alone is normal in a sale',
    path: ['weights', 'rate'],
  })
  .refine(({ weights: { rate, failures, latency }, openAt }) => rate + failures + latency >= openAt, {
    error: 'must add up to openAt or more, or the breaker never opens',
    path: ['weights'],
  });

export type BreakerRules = z.infer<typeof breakerRules>;
