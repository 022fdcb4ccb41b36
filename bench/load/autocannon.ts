import { createRequire } from 'node:module';
import autocannon from 'autocannon';
import { headersAt, readRecords } from './buyers.js';
import { inChildProcess, ownCpuSeconds } from './child.js';
import type { LoadGenerator, LoadPlan, LoadResult } from './load.js';

/** For machines without wrk. It takes several times the CPU of wrk, which the servers then lack. */
export function autocannonGenerator(): LoadGenerator {
  const { version } = createRequire(import.meta.url)('autocannon/package.json') as { version: string };
  return {
    name: `autocannon ${version}`,
    run: runAutocannon,
  };
}

/** How long answers may take after the end of the load. */
const TAIL_SECONDS = 30;
const TIMEOUT_SECONDS = 10;

/** A client of autocannon ends itself, instead of sending again, once it has made `responseMax` requests. */
type EndableClient = autocannon.Client & { responseMax?: number; reqsMade: number };

const runAutocannon = inChildProcess<LoadPlan, LoadResult>(import.meta.url, async (plan) => {
  const { buyers, connections, seconds } = plan;
  const records = readRecords(buyers);
  const cpuBefore = ownCpuSeconds();
  let [taken, accepted, answered, startedAtMs, endedAtMs] = [0, 0, 0, 0, 0];
  const isOver = (): boolean => taken >= buyers.count || Date.now() >= startedAtMs + seconds * 1000;

  const nextRequest = (request: autocannon.Request): autocannon.Request => {
    startedAtMs ||= Date.now();
    const headers = headersAt(records, buyers.recordBytes, Math.min(taken++, buyers.count - 1));
    return { ...request, headers: { 'Content-Type': 'application/json', ...headers } };
  };
  const { latency, errors, requests } = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(
      {
        url: `http://127.0.0.1:${plan.port}${plan.path}`,
        connections,
        duration: seconds + TAIL_SECONDS,
        timeout: TIMEOUT_SECONDS,
        requests: [{ method: 'POST', body: '{"quantity":1}', setupRequest: nextRequest }],
      },
      (error: unknown, result) => (error ? reject(error as Error) : resolve(result)),
    );
    instance.on('response', (client, statusCode) => {
      answered++;
      if (Number(statusCode) < 300) accepted++;
      endedAtMs = Date.now();
      const ending = client as EndableClient;
      if (isOver()) ending.responseMax = ending.reqsMade; // it has its answer and sends nothing more
    });
  });
  return {
    sent: requests.sent,
    answered,
    accepted,
    errors,
    startedAtMs,
    endedAtMs,
    latency: { p50: latency.p50, p99: latency.p99, p999: latency.p99_9, max: latency.max },
    ranOutOfBuyers: taken >= buyers.count,
    cpuSeconds: ownCpuSeconds() - cpuBefore,
  };
});
