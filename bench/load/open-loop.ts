import { build, type Histogram } from 'hdr-histogram-js';
import { readRecords } from './buyers.js';
import { inChildProcess, ownCpuSeconds } from './child.js';
import { requestFrame, type Latency, type LoadPlan, type LoadResult } from './load.js';
import { dueAtMs, RequestSender } from './request-sender.js';

/** Requests that are due at a fixed rate, whether or not earlier ones have been answered. */
export interface OpenLoopPlan extends LoadPlan {
  /** Requests per second. */
  readonly rate: number;
  /** Addresses that the connections come from in turn; left out: all from 127.0.0.1. */
  readonly addresses?: readonly string[];
}

/** What the answer to a buyer of an open-loop load says of the purchase; 0 stands for a buyer who sent nothing. */
export const OUTCOME_CODE = { ok: 1, fail: 2, unknown: 3 } as const;

/** A 503 may leave it open whether units are held; 4xx says that none are. */
export const outcomeCodeOf = (status: number): number =>
  status < 300 ? OUTCOME_CODE.ok : status < 500 ? OUTCOME_CODE.fail : OUTCOME_CODE.unknown;

export interface OpenLoopResult extends LoadResult {
  /** Of accepted purchases alone. */
  readonly acceptedLatency: Latency;
  /** Answers 503; when the first and the last of them came, ms after the start. */
  readonly unavailable: { readonly count: number; readonly firstMs: number; readonly lastMs: number };
  /** One byte of OUTCOME_CODE per buyer of the slice, base64. */
  readonly outcomes: string;
  /** How late the client itself sent, ms: what it adds to every latency. */
  readonly sendDelay: Latency;
}

/** What has to wait for a free connection is late, and its latency says so. */
export const runOpenLoop = inChildProcess<OpenLoopPlan, OpenLoopResult>(import.meta.url, async (plan) => {
  const { port, path, buyers, connections, seconds, rate, addresses } = plan;
  const records = readRecords(buyers);
  const frame = requestFrame({ port, path });
  const [head, tail] = [Buffer.from(frame.head, 'latin1'), Buffer.from(frame.tail, 'latin1')];
  const total = Math.min(buyers.count, Math.round(rate * seconds));
  const outcomes = new Uint8Array(buyers.count);
  const [all, accepted, sendDelay] = [new LatencyHistogram(), new LatencyHistogram(), new LatencyHistogram()];
  let [startedAt, lastAnswerAt] = [0, 0];
  const unavailable = { count: 0, firstMs: 0, lastMs: 0 };
  const elapsedMs = (): number => performance.now() - startedAt;

  const sender = new RequestSender({
    port,
    connections,
    rate,
    total,
    inTurn: addresses !== undefined,
    ...(addresses === undefined ? {} : { addressOf: (turn) => addresses[turn % addresses.length] as string }),
    request: (place) => {
      outcomes[place] = OUTCOME_CODE.unknown;
      sendDelay.record(dueAtMs(place, rate), elapsedMs());
      const record = records.subarray(place * buyers.recordBytes, (place + 1) * buyers.recordBytes);
      return Buffer.concat([head, record, tail]);
    },
    onAnswer: (place, status) => {
      lastAnswerAt = elapsedMs();
      outcomes[place] = outcomeCodeOf(status);
      if (status === 503) {
        if (unavailable.count++ === 0) unavailable.firstMs = lastAnswerAt;
        unavailable.lastMs = lastAnswerAt;
      }
      all.record(dueAtMs(place, rate), lastAnswerAt);
      if (outcomes[place] === OUTCOME_CODE.ok) accepted.record(dueAtMs(place, rate), lastAnswerAt);
      sender.sendDue(lastAnswerAt);
    },
  });
  await sender.start();
  const cpuBefore = ownCpuSeconds();
  const startedAtMs = Date.now();
  startedAt = performance.now();
  await sender.sendAll(elapsedMs);
  sender.end();
  return {
    sent: sender.sent,
    answered: sender.answered,
    accepted: accepted.count,
    errors: sender.sent - sender.answered,
    startedAtMs,
    endedAtMs: startedAtMs + lastAnswerAt,
    latency: all.summary(),
    acceptedLatency: accepted.summary(),
    sendDelay: sendDelay.summary(),
    unavailable,
    ranOutOfBuyers: total < Math.round(rate * seconds),
    cpuSeconds: ownCpuSeconds() - cpuBefore,
    outcomes: Buffer.from(outcomes).toString('base64'),
  };
});

/** In µs; a longer latency counts as this. */
const HIGHEST_US = 120_000_000;

/** Latencies in ms, kept with three digits. */
export class LatencyHistogram {
  readonly #histogram: Histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_US,
    numberOfSignificantValueDigits: 3,
  });

  /** A request that was due at `dueMs` and answered at `answeredMs`: what it waited before it was sent counts. */
  record(dueMs: number, answeredMs: number): void {
    this.#histogram.recordValue(Math.min(HIGHEST_US, Math.max(0, Math.round((answeredMs - dueMs) * 1000))));
  }

  get count(): number {
    return this.#histogram.totalCount;
  }

  summary(): Latency {
    const at = (percentile: number): number => this.#histogram.getValueAtPercentile(percentile) / 1000;
    return { p50: at(50), p99: at(99), p999: at(99.9), max: this.#histogram.maxValue / 1000 };
  }
}
