import { readRecords } from '../load/buyers.js';
import { inChildProcess, ownCpuSeconds } from '../load/child.js';
import { requestFrame } from '../load/load.js';
import { outcomeCodeOf, OUTCOME_CODE, type OpenLoopPlan } from '../load/open-loop.js';
import { dueAtMs, RequestSender } from '../load/request-sender.js';

/** Buyers who come at a fixed rate and go to the sales in turn. */
export interface ManySalesPlan extends Omit<OpenLoopPlan, 'path' | 'addresses'> {
  /** The purchase endpoint of each sale. */
  readonly paths: readonly string[];
}

export interface ManySalesResult {
  /** First request, Unix ms. */
  readonly startedAtMs: number;
  readonly sent: number;
  /** Of each request in order, from when it was due, ms as 32-bit floats, base64; NaN without an answer. */
  readonly latencies: string;
  /** One byte of OUTCOME_CODE each, base64. */
  readonly outcomes: string;
  /** How late the client itself sent, likewise. */
  readonly sendDelays: string;
  readonly cpuSeconds: number;
}

export const runManySales = inChildProcess<ManySalesPlan, ManySalesResult>(import.meta.url, async (plan) => {
  const { port, paths, buyers, connections, seconds, rate } = plan;
  const records = readRecords(buyers);
  const frames = paths.map((path) => {
    const { head, tail } = requestFrame({ port, path });
    return { head: Buffer.from(head, 'latin1'), tail: Buffer.from(tail, 'latin1') };
  });
  const total = Math.min(buyers.count, Math.round(rate * seconds));
  const outcomes = new Uint8Array(total);
  const latencies = new Float32Array(total).fill(NaN);
  const sendDelays = new Float32Array(total).fill(NaN);
  let startedAt = 0;
  const elapsedMs = (): number => performance.now() - startedAt;

  const sender = new RequestSender({
    port,
    connections,
    rate,
    total,
    inTurn: false,
    request: (place) => {
      outcomes[place] = OUTCOME_CODE.unknown;
      sendDelays[place] = elapsedMs() - dueAtMs(place, rate);
      const record = records.subarray(place * buyers.recordBytes, (place + 1) * buyers.recordBytes);
      const { head, tail } = frames[place % frames.length] as (typeof frames)[number];
      return Buffer.concat([head, record, tail]);
    },
    onAnswer: (place, status) => {
      outcomes[place] = outcomeCodeOf(status);
      latencies[place] = elapsedMs() - dueAtMs(place, rate);
      sender.sendDue(elapsedMs());
    },
  });
  await sender.start();
  const cpuBefore = ownCpuSeconds();
  const startedAtMs = Date.now();
  startedAt = performance.now();
  await sender.sendAll(elapsedMs);
  sender.end();
  const base64 = ({ buffer }: Float32Array | Uint8Array): string =>
    Buffer.from(buffer as ArrayBuffer).toString('base64');
  return {
    startedAtMs,
    sent: sender.sent,
    latencies: base64(latencies),
    outcomes: base64(outcomes),
    sendDelays: base64(sendDelays),
    cpuSeconds: ownCpuSeconds() - cpuBefore,
  };
});
