import type { Dependency } from '../../core/errors.js';
import { z } from 'zod';
import { mode } from '../layer.js';

export const DEPENDENCIES = ['redis', 'rocketmq', 'mysql'] as const satisfies readonly Dependency[];

const share = z.number().min(0).max(1);

/** Reads the ramp of a signal, which rises linearly from 0 at `from` to 1 at `to`. */
const ramp = (from: number, to: number, unit: z.ZodNumber) =>
  z
    .strictObject({ from: unit.default(from), to: unit.default(to) })
    .refine((one) => one.from < one.to, { error: 'must have a from that is less than to' })
    .prefault({});

const weights = z.strictObject({
  rate: share.default(0.2),
  failures: share.default(0.6),
  latency: share.default(0.4),
});

const rate = z.strictObject({
  /** Calls per second as a multiple of the learned rate. */
  ramp: ramp(2, 5, z.number().min(1).max(1000)),
  /** Minimum of the usual rate, so that the first buyers of a morning do not count as a crowd. */
  floorPerSecond: z.number().min(1).max(1_000_000).default(100),
  /** After this time, newer calls make up half of the usual rate. */
  halfLifeMs: z.int().min(1000).max(86_400_000).default(300_000),
  /** Minimum learning time before the rate counts. */
  warmUpMs: z.int().min(0).max(3_600_000).default(60_000),
});

const probe = z
  .strictObject({
    /** Time from opening to the trial. Doubles after each failed trial. */
    firstMs: z.int().min(10).max(60_000).default(1000),
    /** Maximum wait. */
    capMs: z.int().min(10).max(600_000).default(30_000),
    /** Fraction by which a wait may be shortened, so that processes do not try at the same moment. */
    jitter: share.default(0.2),
    /** If a breaker opens again this soon after closing, its waits grow further. */
    calmMs: z.int().min(0).max(600_000).default(30_000),
  })
  .refine((one) => one.firstMs <= one.capMs, { error: 'must have a firstMs that is not greater than capMs' });

const trial = z.strictObject({
  /** Number of requests admitted to a trial. That many calls in a row must succeed. */
  calls: z.int().min(1).max(1000).default(5),
  /** If a trial has no result after this time, it admits further requests. */
  waitMs: z.int().min(10).max(60_000).default(1000),
});

/** The rules of the breakers. Each dependency has a breaker. */
export const breakerRules = z
  .strictObject({
    mode: mode.default('off'),
    /** Length of the window. Older calls do not count. */
    windowMs: z.int().min(1000).max(600_000).default(10_000),
    /** Minimum number of calls in the window. With fewer, the breaker stays closed. */
    callsMin: z.int().min(1).max(1_000_000).default(50),
    openAt: z.number().gt(0).max(1).default(0.5),
    weights: weights.prefault({}),
    rate: rate.prefault({}),
    failures: ramp(0.1, 0.5, share),
    /** 95th percentile, ms. */
    latencyMs: ramp(100, 1000, z.number().min(0).max(60_000)),
    probe: probe.prefault({}),
    trial: trial.prefault({}),
    /** If this share of the live processes (two or more, if two live) has the breaker open, it is open for all. */
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
