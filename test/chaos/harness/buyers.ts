import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { purchaseKey } from '../../../src/core/purchase.js';
import { createTokenSigner } from '../../../src/http/token.js';
import type { Move } from '../../invariants/check-history.js';
import { expectEqual, expectTrue } from './expect.js';
import { type Answer, ask } from './http.js';
import { OpLog } from './op-log.js';
import type { Program } from './programs.js';

export interface PurchaseParts {
  readonly requestId?: string;
  readonly quantity?: number;
  /** Tries with the same key, until one is final (2xx or 4xx). Default 1. */
  readonly tries?: number;
  /** Address of the api for this purchase; default: each in turn. */
  readonly url?: string;
}

const HOUR_MS = 3_600_000;
const TRY_TIMEOUT_MS = 5_000;
const AGAIN_MS = 200;
const ASK_AGAIN_TRIES = 50;

/** Ends every load of this process that still runs: a test that failed has not stopped its own. */
export async function stopLoads(): Promise<void> {
  await Promise.all([...loads].map((load) => load.stop()));
}

export interface Load {
  /** No more buyers; waits for the answers of the last. */
  stop(): Promise<void>;
}
const loads = new Set<Load>();

/** Buyers of one sale. Each try goes to the next api, and the op log notes what was heard. */
export class Buyers {
  readonly opLog: OpLog;
  readonly saleId: string;
  readonly #loads = new Set<Load>();
  readonly #urls: () => readonly string[];
  readonly #sign: ReturnType<typeof createTokenSigner>;
  #turn = 0;

  /**
   * @param secret the api checks tokens with it
   * @param urls of every api that may be asked, read anew for each request
   * @param opLogFile where the op log is written; null: only in memory
   */
  constructor(saleId: string, secret: string, urls: () => readonly string[], opLogFile: string | null = null) {
    this.opLog = new OpLog(opLogFile);
    this.saleId = saleId;
    this.#urls = urls;
    this.#sign = createTokenSigner(secret);
  }

  token(userId: string, roles: readonly string[] = []): string {
    return this.#sign({ userId, roles, ttlMs: HOUR_MS });
  }

  /** One purchase. @returns its last answer; null when the last try broke */
  async buy(userId: string, parts: PurchaseParts = {}): Promise<Answer | null> {
    const { requestId = 'k1', quantity = 1, tries = 1 } = parts;
    const token = this.token(userId);
    let answer: Answer | null = null;
    for (let attempt = 1; attempt <= tries; attempt++) {
      if (attempt > 1) await sleep(AGAIN_MS);
      const url = `${parts.url ?? this.#nextUrl()}/v1/sales/${this.saleId}/purchases`;
      const headers = { 'Idempotency-Key': requestId };
      const body = { quantity };
      const key = purchaseKey({ userId, requestId });
      this.opLog.invoke('purchase', key);
      answer = await ask(url, { method: 'POST', token, headers, body, timeoutMs: TRY_TIMEOUT_MS }).catch(() => null);
      this.opLog.hear(key, answer, quantity);
      if (answer !== null && answer.status < 500) break;
    }
    return answer;
  }

  /** Where a purchase stands. @param waitSeconds long poll */
  async status(userId: string, requestId = 'k1', waitSeconds = 0): Promise<Answer> {
    const key = purchaseKey({ userId, requestId });
    const url = `${this.#nextUrl()}/v1/sales/${this.saleId}/purchases/${requestId}?wait=${waitSeconds}`;
    this.opLog.invoke('look', key);
    try {
      const answer = await ask(url, { token: this.token(userId), timeoutMs: waitSeconds * 1000 + TRY_TIMEOUT_MS });
      this.opLog.look(key, answer);
      return answer;
    } catch (error) {
      this.opLog.look(key, null);
      throw error;
    }
  }

  /** Keeps asking where these purchases stand, one after the other, until `stop`; the op log notes every turn. */
  watch(userIds: readonly string[], everyMs = 250): Load {
    return this.#loadOf(async (stopping) => {
      while (!stopping()) {
        for (const userId of userIds) await this.status(userId).catch(() => null);
        await sleep(everyMs);
      }
    });
  }

  /** @returns null when no answer came */
  async move(move: Move, userId: string, orderId: string): Promise<Answer | null> {
    const url = `${this.#nextUrl()}/v1/orders/${orderId}/${move}`;
    this.opLog.invoke(move, orderId);
    const answer = await ask(url, { method: 'POST', token: this.token(userId) }).catch(() => null);
    this.opLog.move(move, orderId, answer);
    return answer;
  }

  order(userId: string, orderId: string): Promise<Answer> {
    return ask(`${this.#nextUrl()}/v1/orders/${orderId}`, { token: this.token(userId) });
  }

  /** Everybody buys once, `parallel` at a time. @returns answers in the order of the buyers */
  async rush(userIds: readonly string[], parallel: number, parts: PurchaseParts = {}): Promise<(Answer | null)[]> {
    const answers: (Answer | null)[] = [];
    let next = 0;
    const hand = async (): Promise<void> => {
      for (let mine = next++; mine < userIds.length; mine = next++) {
        answers[mine] = await this.buy(userIds[mine] as string, parts);
      }
    };
    await Promise.all(Array.from({ length: parallel }, hand));
    return answers;
  }

  /** Whoever does not know yet asks again with the same key, until the answer is final. */
  async askAgain(parallel = 16): Promise<void> {
    const open = [...this.opLog.entries].filter(([, heard]) => heard === 'unknown').map(([key]) => key);
    const hand = async (): Promise<void> => {
      for (let key = open.pop(); key !== undefined; key = open.pop()) {
        const [userId, requestId] = key.split('/') as [string, string];
        await this.buy(userId, { requestId, tries: ASK_AGAIN_TRIES });
      }
    };
    await Promise.all(Array.from({ length: parallel }, hand));
  }

  /** New buyers keep coming until `stop`, which waits for the last of them. */
  startLoad({ parallel = 16, pauseMs = 30, tries = 3, prefix = 'load' } = {}): Load {
    let made = 0;
    return this.#loadOf(async (stopping) => {
      const hand = async (): Promise<void> => {
        while (!stopping()) {
          await this.buy(`${prefix}-${made++}`, { tries });
          await sleep(pauseMs);
        }
      };
      await Promise.all(Array.from({ length: parallel }, hand));
    });
  }

  /** Ends every load of these buyers and writes the rest of their op log. */
  async close(): Promise<void> {
    await Promise.all([...this.#loads].map((load) => load.stop()));
    this.opLog.flush();
  }

  #loadOf(work: (stopping: () => boolean) => Promise<void>): Load {
    let stopped = false;
    const end = work(() => stopped);
    end.catch(() => undefined); // whoever stops it hears of it
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

/** Who asks again with the same key may be told 200 instead of 202: the first answer was lost or came too late. */
export const isYes = (answer: Answer | null | undefined): boolean => (answer?.status ?? 500) < 300;

/** `yes`, or the code of the refusal. */
export const wordOf = (answer: Answer | null | undefined): string =>
  isYes(answer) ? 'yes' : String(answer?.json.code ?? 'nothing');

/** @throws AssertionError unless every answer is a yes for the same request */
export function expectOneRequest(answers: readonly (Answer | null)[], requestId: string): void {
  expectTrue(answers.every(isYes), 'every answer is 2xx');
  expectEqual([...new Set(answers.map((answer) => answer?.json.requestId))], [requestId], 'requests in the answers');
}

export interface GoneBuyers {
  readonly size: number;
  /** They reset their connections without having heard anything. */
  reset(): Promise<void>;
}

/** Buyers who have sent a purchase and wait for its answer, until they reset their connection. */
export function goneBuyers(buyers: Buyers, api: Program, userIds: readonly string[]): GoneBuyers {
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
      for (const userId of userIds) buyers.opLog.hear(keyOf(userId), null);
    },
  };
}

const keyOf = (userId: string): string => purchaseKey({ userId, requestId: 'k1' });
