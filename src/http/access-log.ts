import { open } from 'node:fs/promises';
import type { Clock } from '../core/ports/clock.js';
import { SecondBudget } from '../core/second-budget.js';
import type { Answer } from './answer.js';
import type { HttpRoute } from './metrics.js';

export interface AccessLogOptions {
  readonly kind: 'off' | 'refusals' | 'sampled' | 'all';
  /** In mode `sampled`, one in this many answers is written. */
  readonly sampleEvery: number;
  /** Maximum number of lines per second. Answers above it are only counted, and the count is logged. */
  readonly perSecondMax?: number;
}

/** The request fields that a line shows. */
export interface LoggedRequest {
  readonly counter: { readonly route: HttpRoute };
  readonly requestId: string | null;
  /** The user id in the token. Empty until the caller is known. */
  readonly userId: string;
  /** The parameters of the path. */
  readonly params: unknown;
  /** The trace id of the answer. */
  traceId: string;
}

interface Entry extends LoggedRequest {
  readonly atMs: number;
  readonly tookMs: number;
  readonly answer: Answer;
}

const FLUSH_EVERY_MS = 200;
/** At this rate the log grows by a few hundred kB a second, so an attack does not fill a disk within minutes. */
const LINES_PER_SECOND_MAX = 2000;
/** How many seconds' worth of lines may wait for a slow disk or pipe. Beyond that, answers are only counted. */
const WAITING_SECONDS = 5;
const REFUSED_FROM = 400;
/** Maximum number of characters shown of an id in a path, because an unchecked id may contain anything. */
const ID_SHOWN = 64;

/** The destination of the lines. */
export interface LineSink {
  /** Rejects if some of the lines could not be written. */
  write(lines: string): Promise<void>;
  /** Never rejects. */
  close(): Promise<void>;
}

/**
 * Writes one line of JSON per answer, to show why a request was refused. Recording an answer costs only one object: the
 * lines are built and written together, five times a second. A line shows the buyer, the key of the purchase, the ids
 * in the path and the trace id. It never shows a token, another header, the body, the address or the query.
 */
export class AccessLog {
  readonly #options: AccessLogOptions;
  readonly #perSecondMax: number;
  readonly #sink: LineSink;
  readonly #clock: Clock;
  readonly #onSkipped: (lines: number) => void;
  readonly #budget: SecondBudget;
  readonly #timer: NodeJS.Timeout;
  #entries: Entry[] = [];
  #writing: Promise<void> | null = null;
  #seen = 0;
  #skipped = 0;

  /** @param onSkipped receives the number of answers for which no line was written */
  constructor(options: AccessLogOptions, sink: LineSink, clock: Clock, onSkipped: (lines: number) => void) {
    this.#options = options;
    this.#perSecondMax = options.perSecondMax ?? LINES_PER_SECOND_MAX;
    this.#sink = sink;
    this.#clock = clock;
    this.#onSkipped = onSkipped;
    this.#budget = new SecondBudget(this.#perSecondMax, clock);
    this.#timer = setInterval(() => void this.#flush(), FLUSH_EVERY_MS).unref();
  }

  note({ counter, requestId, userId, params, traceId }: LoggedRequest, answer: Answer, tookMs: number): void {
    const { kind, sampleEvery } = this.#options;
    if (kind === 'refusals' && answer.status < REFUSED_FROM) return;
    if (kind === 'sampled' && this.#seen++ % sampleEvery !== 0) return;
    const isFull = this.#entries.length >= WAITING_SECONDS * this.#perSecondMax;
    if (!this.#budget.take() || isFull) this.#skip(1);
    else {
      this.#entries.push({ counter, requestId, userId, params, traceId, answer, tookMs, atMs: this.#clock.nowMs() });
    }
  }

  /** Writes the waiting lines. Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    await this.#flush();
    await this.#sink.close();
  }

  /** Runs one write at a time, so that lines stay in order and a slow disk never gets a second write. */
  #flush(): Promise<void> {
    this.#writing ??= this.#flushOnce().finally(() => (this.#writing = null));
    return this.#writing;
  }

  async #flushOnce(): Promise<void> {
    const [entries, skipped] = [this.#entries, this.#skipped];
    if (entries.length === 0 && skipped === 0) return;
    [this.#entries, this.#skipped] = [[], 0];
    const lines = entries.map(lineOf);
    if (skipped > 0) lines.push(JSON.stringify({ time: isoTime(this.#clock.nowMs()), skipped }));
    try {
      await this.#sink.write(`${lines.join('\n')}\n`);
    } catch {
      this.#skipped += skipped; // reported by an earlier line
      this.#skip(entries.length); // these lines are lost, but later lines are still tried
    }
  }

  #skip(lines: number): void {
    this.#skipped += lines;
    this.#onSkipped(lines);
  }
}

/**
 * Opens a sink that appends to a file, or writes to stdout for an empty path.
 * @throws Error of the file system if the file cannot be opened
 */
export async function openLineSink(path: string): Promise<LineSink> {
  if (path !== '') {
    const file = await open(path, 'a', 0o640);
    return { write: (lines) => file.appendFile(lines), close: () => file.close().catch(() => undefined) };
  }
  return {
    write: (lines) =>
      new Promise((resolve, reject) => {
        process.stdout.write(lines, (error) => (error ? reject(error) : resolve())); // may throw, which rejects too
      }),
    close: () => Promise.resolve(),
  };
}

function lineOf({ atMs, counter, requestId, userId, params, traceId, answer, tookMs }: Entry): string {
  const { saleId, orderId } = (params ?? {}) as { readonly saleId?: string; readonly orderId?: string };
  const { status, word } = answer;
  return JSON.stringify({
    time: isoTime(atMs),
    route: counter.route,
    status,
    code: word,
    reason: status < REFUSED_FROM || word === 'bad_request' ? undefined : reasonIn(answer.body), // quotes input
    request: requestId ?? undefined,
    user: userId === '' ? undefined : userId,
    sale: saleId?.slice(0, ID_SHOWN),
    order: orderId?.slice(0, ID_SHOWN),
    trace: traceId,
    ms: Math.round(tookMs * 100) / 100,
  });
}

/** Returns the detail that the caller received. */
function reasonIn(body: string): unknown {
  try {
    return (JSON.parse(body) as { readonly detail?: unknown }).detail;
  } catch {
    return undefined; // not a problem; no other answer of ours has such a body
  }
}

const isoTime = (atMs: number): string => new Date(atMs).toISOString();
