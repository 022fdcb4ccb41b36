import { EventStreamReader } from './event-stream.js';
import { abortAfter, open, refusalIn, sleep, untilAnswered, without, type Patience } from './send.js';
import type { ClientOptions, Purchase, PurchaseStep, Refusal } from './types.js';

/** A purchase cannot be followed. Its `refusal` says why. */
export class CannotFollow extends Error {
  override readonly name = 'CannotFollow';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.detail);
    this.refusal = refusal;
  }
}

const timeUp = (): CannotFollow => new CannotFollow(without('time_up', 'The purchase did not end in time.'));

type Step = PurchaseStep['step'];
const ENDS: ReadonlySet<string> = new Set<Step>(['failed', 'paid', 'cancelled', 'expired']);

/**
 * How long to wait for the first bytes. A stream reports at once that it is open, so a silent stream is being held back
 * on its way.
 */
const FIRST_BYTES_MS = 6_000;
/** Silence after which a stream is dead. Heartbeats come every 15 s, at most every 30 s. Two heartbeats may be lost. */
const SILENT_MS = 70_000;
/** A stream that was open for less time was cut on its way. */
const OPEN_MS = 1_000;
/** Number of failed streams in a row after which only polls are used. */
const FAULTS_MAX = 2;
const RETRY_MS = 2_000;
/** How long the server holds a poll. Proxies cut longer requests. */
const LONG_POLL_SECONDS = 25;
const LONG_POLL_TIMEOUT_MS = 40_000;

/** How a stream ended. `held_back`: no byte came, and a second attempt would not help. */
type Streamed = 'worked' | 'cut' | 'held_back' | 'end';

/**
 * Yields every step of a purchase, from its current state to its end. The source is the event stream, which resumes
 * after its last event if it was cut. Polls replace the stream if a proxy holds it back or the API refuses it. A step
 * may be skipped if a later step is known.
 * @throws CannotFollow if the API refuses, or the patience ends before the purchase; the reason of an aborted signal
 */
export async function* follow(
  path: string,
  patience: Patience,
  options: ClientOptions,
): AsyncGenerator<PurchaseStep, void, undefined> {
  const reader = { lastEventId: null as string | null, retryMs: RETRY_MS };
  let faults = 0;
  while (faults < FAULTS_MAX) {
    const ended = yield* stream(path, reader, patience.signal, options);
    if (ended === 'end') return;
    if (ended === 'held_back') break;
    faults = ended === 'worked' ? 0 : faults + 1;
    if (performance.now() > patience.endMs) throw timeUp();
    if (faults < FAULTS_MAX) await sleep(reader.retryMs * (1 + Math.random() / 2), patience.signal);
  }
  yield* poll(path, reader.lastEventId, patience, options);
}

async function* stream(
  path: string,
  seen: { lastEventId: string | null; retryMs: number },
  outer: AbortSignal | undefined,
  options: ClientOptions,
): AsyncGenerator<PurchaseStep, Streamed, undefined> {
  const timer = abortAfter(FIRST_BYTES_MS, outer);
  const startedMs = performance.now();
  let hasBytes = false;
  try {
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': seen.lastEventId };
    const response = await open({ path: `${path}/events`, headers }, timer.signal, options);
    if (response.status === 204) return 'end';
    if (!response.ok) {
      const refusal = await refusalIn(response);
      if (refusal.retryAfterMs === null && refusal.code !== 'no_answer') throw new CannotFollow(refusal);
      return 'held_back'; // too many streams are open, or the API is too busy: a poll costs less
    }
    if (response.body === null) return 'held_back';
    const parser = new EventStreamReader();
    const decoder = new TextDecoder();
    const body = response.body.getReader();
    for (;;) {
      const { done, value } = await body.read();
      if (done) break;
      hasBytes = true;
      timer.more(SILENT_MS);
      for (const { id, event, data } of parser.push(decoder.decode(value, { stream: true }))) {
        seen.lastEventId = id ?? seen.lastEventId;
        yield { step: event as Step, purchase: JSON.parse(data) as Purchase };
        if (ENDS.has(event)) return 'end';
      }
      seen.retryMs = parser.retryMs ?? seen.retryMs;
    }
    return performance.now() - startedMs >= OPEN_MS ? 'worked' : 'cut';
  } catch (error) {
    outer?.throwIfAborted();
    if (error instanceof CannotFollow) throw error;
    return hasBytes ? 'cut' : 'held_back';
  } finally {
    timer.end();
    timer.abort(); // a reader that stops early leaves no connection open
  }
}

async function* poll(
  path: string,
  lastStep: string | null,
  patience: Patience,
  options: ClientOptions,
): AsyncGenerator<PurchaseStep, void, undefined> {
  let last = lastStep;
  for (;;) {
    const askedMs = performance.now();
    const request = { path: `${path}?wait=${LONG_POLL_SECONDS}`, timeoutMs: LONG_POLL_TIMEOUT_MS };
    const answer = await untilAnswered<Purchase>(request, patience, options);
    if (!answer.ok) throw new CannotFollow(answer);
    const step = stepOf(answer.body);
    if (step !== null && step !== last) {
      last = step;
      yield { step, purchase: answer.body };
      if (ENDS.has(step)) return;
    }
    if (performance.now() > patience.endMs) throw timeUp();
    await sleep(pauseMs(step, performance.now() - askedMs), patience.signal);
  }
}

/**
 * Returns the pause before the next poll. The server holds a poll of a pending purchase, unless it is too busy. It
 * answers at once if the order is waiting for its payment.
 */
function pauseMs(step: Step | null, tookMs: number): number {
  if (step !== null && step !== 'pending') return 5_000 + Math.random() * 3_000;
  return tookMs > 1_000 ? Math.random() * 300 : 1_500 + Math.random() * 1_500;
}

/** Returns null if a degraded API does not know the step. */
function stepOf({ status, orderState }: Purchase): Step | null {
  if (status === 'ordered' && orderState !== undefined && ENDS.has(orderState)) return orderState as Step;
  return status === 'pending' || status === 'ordered' || status === 'failed' ? status : null;
}
