import { readRecords } from './buyers.js';
import { inChildProcess, ownCpuSeconds } from './child.js';
import { LatencyHistogram } from './latency.js';
import { requestFrame, type Latency, type LoadPlan, type LoadResult } from './load.js';
import { dueAtMs, RequestSender } from './request-sender.js';

/** Requests are due at a fixed rate, whether or not earlier requests have been answered. */
export interface OpenLoopPlan extends LoadPlan {
  /** Requests per second. */
  readonly rate: number;
}

/** The outcome of a purchase according to its answer. 0 stands for a buyer who sent nothing. */
export const OUTCOME_CODE = { ok: 1, fail: 2, unknown: 3 } as const;

/** Classifies a status: 4xx means that no units are held, and 503 leaves that open. */
const outcomeCodeOf = (status: number): number =>
  status < 300 ? OUTCOME_CODE.ok : status < 500 ? OUTCOME_CODE.fail : OUTCOME_CODE.unknown;

export interface OpenLoopResult extends LoadResult {
  /** Latency of accepted purchases only. */
  readonly acceptedLatency: Latency;
  /** OUTCOME_CODE of each buyer of the slice as one byte, in base64. */
  readonly outcomes: string;
  /** Delay of the client, in ms, which every latency includes. */
  readonly sendDelay: Latency;
}

/** Sends purchases at a fixed rate. If a request must wait for a free connection, its latency includes the wait. */
export const runOpenLoop = inChildProcess<OpenLoopPlan, OpenLoopResult>(import.meta.url, async (plan) => {
  const { port, path, buyers, connections, seconds, rate } = plan;
  const records = readRecords(buyers);
  const frame = requestFrame({ port, path });
  const [head, tail] = [Buffer.from(frame.head, 'latin1'), Buffer.from(frame.tail, 'latin1')];
  const total = Math.min(buyers.count, Math.round(rate * seconds));
  const outcomes = new Uint8Array(buyers.count);
  const [all, accepted, sendDelay] = [new LatencyHistogram(), new LatencyHistogram(), new LatencyHistogram()];
  let [startedAt, lastAnswerAt] = [0, 0];
  const elapsedMs = (): number => performance.now() - startedAt;

  const sender = new RequestSender({
    port,
    connections,
    rate,
    total,
    request: (place) => {
      outcomes[place] = OUTCOME_CODE.unknown;
      sendDelay.record(dueAtMs(place, rate), elapsedMs());
      const record = records.subarray(place * buyers.recordBytes, (place + 1) * buyers.recordBytes);
      return Buffer.concat([head, record, tail]);
    },
    onAnswer: (place, status) => {
      lastAnswerAt = elapsedMs();
      outcomes[place] = outcomeCodeOf(status);
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
    ranOutOfBuyers: total < Math.round(rate * seconds),
    cpuSeconds: ownCpuSeconds() - cpuBefore,
    outcomes: Buffer.from(outcomes).toString('base64'),
  };
});
