import { createSigner } from 'fast-jwt';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { purchaseKey, splitPurchaseKey } from '../../../src/core/purchase.js';
import type { Move } from '../../invariants/check-history.js';
import { inLanes } from '../../helpers/lanes.js';
import { type Answer, ask } from './http.js';
import { OpLog } from './op-log.js';
import type { Program } from './programs.js';
import { found, until } from './wait.js';

export interface PurchaseParts {
  readonly requestId?: string;
  readonly quantity?: number;
  /** Maximum attempts with the same key, until an answer is final (2xx or 4xx). Default 1. */
  readonly tries?: number;
  /** Address of the api for this purchase. Default: each api in turn. */
  readonly url?: string;
  readonly traceparent?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Time limit of one attempt. */
  readonly timeoutMs?: number | undefined;
}

type Charge = Readonly<Record<string, string | undefined>>;

const HOUR_MS = 3_600_000;
const TRY_TIMEOUT_MS = 30_000;
/** Length of a long poll for the end of a purchase. */
const POLL_S = 10;
/** Additional time for a long poll, because a busy machine answers late. */
const POLL_LATE_MS = 15_000;
const RETRY_MS = 200;
const RETRY_UNKNOWN_TRIES = 50;
const MOVE_TRIES = 20;

/** Sends again while the outcome is unknown, or the row was locked for too long. @returns the final answer */
export async function finalAnswer(send: () => Promise<Answer | null>): Promise<Answer | null> {
  for (let tries = 1; ; tries++) {
    const answer = await send();
    if (tries === MOVE_TRIES || (answer !== null && answer.status < 500)) return answer;
  }
}

/** Ends every running load of this process, because a failed test has not stopped its load. */
export async function stopLoads(): Promise<void> {
  await Promise.all([...loads].map((load) => load.stop()));
}

export interface Load {
  /** Stops new buyers and waits for the last answers. */
  stop(): Promise<void>;
}

interface LoadOptions {
  readonly parallel?: number;
  readonly pauseMs?: number;
  readonly tries?: number;
  readonly prefix?: string;
  /** Time limit of one attempt. */
  readonly timeoutMs?: number;
}

const loads = new Set<Load>();

/** Buyers of one sale. Each attempt goes to the next api, and the op log records the answers. */
export class Buyers {
  readonly opLog: OpLog;
  readonly saleId: string;
  readonly #loads = new Set<Load>();
  readonly #urls: () => readonly string[];
  readonly #sign: (claims: object) => string;
  #turn = 0;
  /** How long ago the tokens were issued, ms. An api with a slow clock accepts no token from its future. */
  issuedAgoMs = 0;
  /** Default time limit of one attempt to buy. */
  tryTimeoutMs = TRY_TIMEOUT_MS;

  /**
   * @param secret the api verifies tokens with it
   * @param urls of every api that may be used, read again for each request
   * @param opLogFile where the op log is written; null: only in memory
   */
  constructor(saleId: string, secret: string, urls: () => readonly string[], opLogFile: string | null = null) {
    this.opLog = new OpLog(opLogFile);
    this.saleId = saleId;
    this.#urls = urls;
    this.#sign = createSigner({ key: secret, algorithm: 'HS256' });
  }

  token(userId: string, roles: readonly string[] = []): string {
    const seconds = (atMs: number): number => Math.floor(atMs / 1000);
    const [iat, exp] = [seconds(Date.now() - this.issuedAgoMs), seconds(Date.now() + HOUR_MS)];
    return this.#sign({ sub: userId, roles, iat, exp });
  }

  /** Makes one purchase. @returns its last answer, or null if the last attempt broke */
  async buy(userId: string, parts: PurchaseParts = {}): Promise<Answer | null> {
    const { requestId = 'k1', quantity = 1, tries = 1, metadata, timeoutMs = this.tryTimeoutMs } = parts;
    const token = this.token(userId);
    let answer: Answer | null = null;
    for (let attempt = 1; attempt <= tries; attempt++) {
      if (attempt > 1) await sleep(RETRY_MS);
      const url = `${parts.url ?? this.#nextUrl()}/v1/sales/${this.saleId}/purchases`;
      const { traceparent } = parts;
      const headers = { 'Idempotency-Key': requestId, ...(traceparent === undefined ? {} : { traceparent }) };
      const body = { quantity, ...(metadata === undefined ? {} : { metadata }) };
      const key = purchaseKey({ userId, requestId });
      this.opLog.invoke('purchase', key);
      answer = await ask(url, { method: 'POST', token, headers, body, timeoutMs }).catch(() => null);
      this.opLog.recordAnswer(key, answer, quantity);
      if (answer !== null && answer.status < 500) break;
    }
    return answer;
  }

  /** Reads a purchase. @param waitSeconds length of a long poll */
  async status(userId: string, requestId = 'k1', waitSeconds = 0): Promise<Answer> {
    const key = purchaseKey({ userId, requestId });
    const url = `${this.#nextUrl()}/v1/sales/${this.saleId}/purchases/${requestId}?wait=${waitSeconds}`;
    this.opLog.invoke('status', key);
    try {
      const answer = await ask(url, { token: this.token(userId), timeoutMs: waitSeconds * 1000 + POLL_LATE_MS });
      this.opLog.recordStatus(key, answer);
      return answer;
    } catch (error) {
      this.opLog.recordStatus(key, null);
      throw error;
    }
  }

  /** Waits until a purchase is an order or has failed. @returns the last answer */
  settled(userId: string, requestId = 'k1'): Promise<Answer> {
    return found(`${userId}/${requestId} is settled`, async () => {
      const answer = await this.status(userId, requestId, POLL_S);
      return answer.status === 200 && answer.json.status !== 'pending' ? answer : null;
    });
  }

  /** Keeps reading the status of these purchases, one after the other, until `stop`. The op log records each status. */
  pollStatus(userIds: readonly string[], everyMs = 250): Load {
    return this.#loadOf(async (stopping) => {
      while (!stopping()) {
        for (const userId of userIds) await this.status(userId).catch(() => null);
        await sleep(everyMs);
      }
    });
  }

  /** @param charge its key, and what its body has @returns null if no answer came */
  async move(move: Move, userId: string, orderId: string, { key, ...body }: Charge = {}): Promise<Answer | null> {
    const charge = key === undefined ? {} : { headers: { 'Idempotency-Key': key }, body };
    const url = `${this.#nextUrl()}/v1/orders/${orderId}/${move}`;
    this.opLog.invoke(move, orderId);
    const answer = await ask(url, { method: 'POST', token: this.token(userId), ...charge }).catch(() => null);
    this.opLog.recordMove(move, orderId, answer);
    return answer;
  }

  order(userId: string, orderId: string): Promise<Answer> {
    return ask(`${this.#nextUrl()}/v1/orders/${orderId}`, { token: this.token(userId) });
  }

  /** Lets each buyer buy once, `parallel` at a time. @returns answers in the order of the buyers */
  async rush(userIds: readonly string[], parallel: number, parts: PurchaseParts = {}): Promise<(Answer | null)[]> {
    const answers: (Answer | null)[] = [];
    await inLanes(parallel, userIds, async (userId, nth) => {
      answers[nth] = await this.buy(userId, parts);
    });
    return answers;
  }

  /** Sends every purchase with an unknown outcome again with the same key, until the answer is final. */
  async retryUnknown(parallel = 16): Promise<void> {
    const open = [...this.opLog.entries].filter(([, outcome]) => outcome === 'unknown');
    await inLanes(parallel, open, ([key]) => {
      const { userId, requestId } = splitPurchaseKey(key);
      return this.buy(userId, { requestId, tries: RETRY_UNKNOWN_TRIES });
    });
  }

  /** Makes new buyers arrive until `stop`, which waits for the last of them. */
  startLoad({ parallel = 16, pauseMs = 30, tries = 3, prefix = 'load', timeoutMs }: LoadOptions = {}): Load {
    let made = 0;
    return this.#loadOf(async (stopping) => {
      const lane = async (): Promise<void> => {
        while (!stopping()) {
          await this.buy(`${prefix}-${made++}`, { tries, timeoutMs });
          await sleep(pauseMs);
        }
      };
      await Promise.all(Array.from({ length: parallel }, lane));
    });
  }

  /** Starts a load. @returns once more than `accepted` further purchases were accepted */
  async startLoadUntil(options: LoadOptions, accepted: number): Promise<Load> {
    const load = this.startLoad(options);
    await this.untilAccepted(accepted, 'the load is on');
    return load;
  }

  /** Waits until more than this number of further purchases were accepted. */
  untilAccepted(more: number, what: string): Promise<void> {
    const before = this.opLog.count('ok');
    return until(what, () => this.opLog.count('ok') > before + more);
  }

  /** Waits until more than this number of further purchases were refused. */
  untilRefused(more: number): Promise<void> {
    const before = this.opLog.count('fail');
    return until('buyers are refused', () => this.opLog.count('fail') > before + more);
  }

  /** Ends every load of these buyers and writes the rest of their op log. */
  async close(): Promise<void> {
    await Promise.all([...this.#loads].map((load) => load.stop()));
    this.opLog.flush();
  }

  #loadOf(work: (stopping: () => boolean) => Promise<void>): Load {
    let stopped = false;
    const end = work(() => stopped);
    end.catch(() => undefined); // `stop` throws the error
    const load: Load = {
      stop: async () => {
        stopped = true;
        this.#loads.delete(load);
        loads.delete(load);
        await end;
      },
    };
    this.#loads.add(load);
    loads.add(load);
    return load;
  }

  #nextUrl(): string {
    const urls = this.#urls();
    const url = urls[this.#turn++ % urls.length];
    if (url === undefined) throw new Error('no api runs');
    return url;
  }
}

export const userIds = (count: number, prefix = 'u'): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

/** A retry with the same key may get 200 instead of 202 if the first answer was lost or came too late. */
export const isAccepted = (answer: Answer | null | undefined): boolean => (answer?.status ?? 500) < 300;

/** `accepted`, or the code of the refusal. */
export const outcomeOf = (answer: Answer | null | undefined): string =>
  isAccepted(answer) ? 'accepted' : String(answer?.json.code ?? 'nothing');

export interface DisconnectingBuyers {
  readonly size: number;
  /** Sends purchases of buyers who reset their connections before any answer. */
  reset(): Promise<void>;
}

/** Buyers who have sent a purchase and wait for its answer, until they reset their connection. */
export function disconnectingBuyers(buyers: Buyers, api: Program, userIds: readonly string[]): DisconnectingBuyers {
  const { port, hostname } = new URL(api.url);
  const body = '{"quantity":1}';
  const sockets = userIds.map((userId): Socket => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => undefined);
    buyers.opLog.invoke('purchase', keyOf(userId));
    socket.write(
      `POST /v1/sales/${buyers.saleId}/purchases HTTP/1.1\r\nHost: a-test\r\nIdempotency-Key: k1\r\n` +
        `Authorization: Bearer ${buyers.token(userId)}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    return socket;
  });
  return {
    size: userIds.length,
    async reset(): Promise<void> {
      const closed = sockets.map((socket) => once(socket, 'close'));
      for (const socket of sockets) socket.resetAndDestroy();
      await Promise.all(closed);
      for (const userId of userIds) buyers.opLog.recordAnswer(keyOf(userId), null);
    },
  };
}

const keyOf = (userId: string): string => purchaseKey({ userId, requestId: 'k1' });
