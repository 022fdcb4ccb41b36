import { setTimeout as sleep } from 'node:timers/promises';
import { createTokenSigner } from '../../src/http/token.js';
import { BenchError } from '../bench-error.js';
import { scrape, sumOf } from './metrics.js';

const TOKEN_TTL_MS = 3_600_000;
const ANSWER_TIMEOUT_MS = 5000;
/** Every api adopts new rules within a second. Taking longer than this is a fault. */
const IN_FORCE_TIMEOUT_MS = 5000;
const POLL_MS = 50;

/** The body of GET /admin/v1/rules. */
interface Stored {
  readonly version: number;
  readonly rules: unknown;
}

/** Reads and publishes the rules of admission, through the admin address of the running api. */
export class RulesAdmin {
  readonly #port: () => number;
  readonly #token: string;

  /** @param secret signs the tokens of the instance @param port where the running api serves operators */
  constructor(secret: string, port: () => number) {
    this.#port = port;
    this.#token = createTokenSigner(secret)({ userId: 'bench', roles: ['admin'], ttlMs: TOKEN_TTL_MS });
  }

  /** Runs the work under these rules and restores the earlier rules, even if the work fails. */
  async during<T>(rules: object, work: () => Promise<T>): Promise<T> {
    const before = await this.#newest();
    await this.#publish(rules);
    try {
      return await work();
    } finally {
      await this.#publish(before.rules);
    }
  }

  async #publish(rules: unknown): Promise<void> {
    const { version } = await this.#newest();
    const published = (await this.#ask('PUT', '/admin/v1/rules', { version, rules })) as Stored;
    const deadlineMs = performance.now() + IN_FORCE_TIMEOUT_MS;
    while (sumOf(await scrape(this.#port()), 'seckill_admission_rules_version') < published.version) {
      if (performance.now() > deadlineMs) {
        throw new BenchError(`rules version ${published.version} is not in force after ${IN_FORCE_TIMEOUT_MS} ms`);
      }
      await sleep(POLL_MS);
    }
  }

  #newest = async (): Promise<Stored> => (await this.#ask('GET', '/admin/v1/rules')) as Stored;

  async #ask(method: string, path: string, body?: object): Promise<unknown> {
    const response = await fetch(`http://127.0.0.1:${this.#port()}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    const text = await response.text();
    if (!response.ok) throw new BenchError(`${method} ${path} was answered ${response.status}: ${text.slice(0, 500)}`);
    return JSON.parse(text);
  }
}
