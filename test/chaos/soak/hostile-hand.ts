import { setTimeout as sleep } from 'node:timers/promises';
import { ask, type Answer, type Ask } from '../harness/http-client.js';
import type { Buyers, Load } from '../harness/buyers.js';
import type { Random } from '../random.js';

/** What a hostile client sends; the path begins at the sale. */
interface Attack {
  readonly what: string;
  readonly path: string;
  readonly request: Ask;
}

/** What came of it. */
export interface HostileTally {
  sent: number;
  readonly wrong: string[];
}

const EVERY_MS = 1_000;
const TIMEOUT_MS = 5_000;
const KEY = { 'Idempotency-Key': 'h1' };

function attacksOf(buyers: Buyers): Attack[] {
  const token = buyers.token('hostile');
  const purchases = `/v1/sales/${buyers.saleId}/purchases`;
  const post = { method: 'POST', token, headers: KEY, timeoutMs: TIMEOUT_MS } as const;
  return [
    { what: 'no token', path: purchases, request: { ...post, token: undefined, body: { quantity: 1 } } },
    { what: 'a token of nobody', path: purchases, request: { ...post, token: `${token}x`, body: { quantity: 1 } } },
    { what: 'no key', path: purchases, request: { ...post, headers: {}, body: { quantity: 1 } } },
    { what: 'half a unit', path: purchases, request: { ...post, body: { quantity: 0.5 } } },
    { what: 'less than nothing', path: purchases, request: { ...post, body: { quantity: -1 } } },
    { what: '10 kB', path: purchases, request: { ...post, body: { quantity: 1, more: 'x'.repeat(10_240) } } },
    { what: 'no such sale', path: '/v1/sales/4711000/purchases', request: { ...post, body: { quantity: 1 } } },
    { what: "somebody else's order", path: '/v1/orders/1/pay', request: post },
    { what: 'the desk of an admin', path: '/admin/v1/sales', request: { ...post, body: {} } },
  ];
}

/** One hostile request a second; each is refused, or hears 503 while something is broken. */
export function startHostileHand(
  buyers: Buyers,
  urls: () => readonly string[],
  random: Random,
  tally: HostileTally,
): Load {
  let stopped = false;
  const attacks = attacksOf(buyers);
  const hand = async (): Promise<void> => {
    while (!stopped) {
      const { what, path, request } = random.pick(attacks);
      const answer = await ask(random.pick(urls()) + path, request).catch(() => null);
      tally.sent++;
      if (!isRefused(answer)) tally.wrong.push(`${what} was answered ${answer?.status} ${answer?.text.slice(0, 100)}`);
      await sleep(EVERY_MS);
    }
  };
  const done = hand();
  done.catch((error: unknown) => tally.wrong.push(String(error)));
  return {
    stop: async () => {
      stopped = true;
      await done.catch(() => undefined); // told already
    },
  };
}

/** No answer is one of a broken connection, which a soak has many of. */
const isRefused = (answer: Answer | null): boolean =>
  answer === null || (answer.status >= 400 && answer.status < 500) || answer.status === 503;
