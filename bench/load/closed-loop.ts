import { laneOf } from '../../src/core/bucket.js';
import { readRecords, userIdOf } from './buyers.js';
import { inChildProcess, ownCpuSeconds } from './child.js';
import { LatencyHistogram } from './latency.js';
import { requestFrame, type LoadPlan, type LoadResult, type RepeatPlan } from './load.js';
import { RequestSender } from './request-sender.js';

/** All requests are due at once, so each connection sends its next request as soon as it has an answer. */
const RATE = 1e9;

/** More requests than two cores can answer. */
const REPEATS_PER_SECOND = 100_000;

/**
 * Sends purchases, or the same request again and again, from a separate process. Each connection sends its next request
 * when it has an answer. Uses no buyer twice, and waits for the answer to every request that was sent.
 */
export const runClosedLoop = inChildProcess<LoadPlan | RepeatPlan, LoadResult>(import.meta.url, async (plan) => {
  const { port, connections, seconds } = plan;
  const [total, requestAt] = 'request' in plan ? repeated(plan) : purchases(plan);
  const sentAt = new Float64Array(total);
  const latency = new LatencyHistogram();
  let [startedAt, lastAnswerAt, accepted] = [0, 0, 0];
  const elapsedMs = (): number => performance.now() - startedAt;
  const sender = new RequestSender({
    port,
    connections,
    rate: RATE,
    total,
    endsAfterMs: seconds * 1000,
    request: (place) => {
      sentAt[place] = elapsedMs();
      return requestAt(place);
    },
    onAnswer: (place, status) => {
      lastAnswerAt = elapsedMs();
      if (status < 300) accepted++;
      latency.record(sentAt[place] ?? 0, lastAnswerAt);
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
    accepted,
    errors: sender.sent - sender.answered,
    startedAtMs,
    endedAtMs: startedAtMs + lastAnswerAt,
    latency: latency.summary(),
    ranOutOfBuyers: sender.sent === total,
    cpuSeconds: ownCpuSeconds() - cpuBefore,
  };
});

type Requests = readonly [total: number, at: (place: number) => Buffer];

function purchases({ buyers, lanes, ...plan }: LoadPlan): Requests {
  const records = readRecords(buyers);
  const frame = requestFrame(plan);
  const [head, tail] = [Buffer.from(frame.head, 'latin1'), Buffer.from(frame.tail, 'latin1')];
  const recordAt = (place: number): Buffer =>
    records.subarray(place * buyers.recordBytes, (place + 1) * buyers.recordBytes);
  const requestAt = (place: number): Buffer => Buffer.concat([head, recordAt(place), tail]);
  if (lanes === undefined) return [buyers.count, requestAt];
  const all = Array.from({ length: buyers.count }, (_, place) => place);
  const ours = all.filter((place) => laneOf(userIdOf(buyers.first + place)) % lanes.of === lanes.part);
  return [ours.length, (nth) => requestAt(ours[nth] as number)];
}

function repeated({ request, seconds }: RepeatPlan): Requests {
  const bytes = Buffer.from(request, 'latin1');
  return [seconds * REPEATS_PER_SECOND, () => bytes];
}
