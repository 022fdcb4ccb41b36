import { readRecords } from './buyers.js';
import { inChildProcess, ownCpuSeconds } from './child.js';
import { LatencyHistogram } from './latency.js';
import { requestFrame, type LoadPlan, type LoadResult } from './load.js';
import { RequestSender } from './request-sender.js';

/** All requests are due at once, so each connection sends the next request as soon as it has its answer. */
const RATE = 1e9;

/**
 * Sends purchases from a process of its own. Each connection sends the next request when it has its answer. No buyer is
 * used twice, and every request that was sent waits for its answer.
 */
export const runClosedLoop = inChildProcess<LoadPlan, LoadResult>(import.meta.url, async (plan) => {
  const { port, path, buyers, connections, seconds } = plan;
  const records = readRecords(buyers);
  const frame = requestFrame({ port, path });
  const [head, tail] = [Buffer.from(frame.head, 'latin1'), Buffer.from(frame.tail, 'latin1')];
  const sentAt = new Float64Array(buyers.count);
  const latency = new LatencyHistogram();
  let [startedAt, lastAnswerAt, accepted] = [0, 0, 0];
  const elapsedMs = (): number => performance.now() - startedAt;
  const sender = new RequestSender({
    port,
    connections,
    rate: RATE,
    total: buyers.count,
    inTurn: false,
    endsAfterMs: seconds * 1000,
    request: (place) => {
      sentAt[place] = elapsedMs();
      return Buffer.concat([
        head,
        records.subarray(place * buyers.recordBytes, (place + 1) * buyers.recordBytes),
        tail,
      ]);
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
    ranOutOfBuyers: sender.sent === buyers.count,
    cpuSeconds: ownCpuSeconds() - cpuBefore,
  };
});
