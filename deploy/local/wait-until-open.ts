import { reasonOf, waitUntil } from './stack/probes.js';

/** After a crash the keeper first reloads the sale into Redis, and the broker gets ready last. */
const OPEN_TIMEOUT_MS = 60_000;
const POLL_MS = 200;
/** The API limits its own probes. This limit is for an API that hangs. */
const ANSWER_TIMEOUT_MS = 5_000;

/** Addresses of the API for buyers and operators. */
interface ApiUrls {
  readonly url: string;
  readonly operatorsUrl: string;
}

/** Returns the parsed body of an API answer. */
type Get = (path: string) => Promise<unknown>;

/**
 * Waits until the API would sell a unit of this sale.
 * @returns null, or after a minute the reason why it still would not
 * @throws the reason of `signal`
 */
export async function waitUntilOpen(
  { url, operatorsUrl }: ApiUrls,
  saleId: string,
  signal: AbortSignal,
): Promise<string | null> {
  const get: Get = async (path) =>
    (
      await fetch((path === '/readyz' ? operatorsUrl : url) + path, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) })
    ).json() as Promise<unknown>;
  let reason: string | null = null;
  const check = async (): Promise<boolean> => (reason = await whyNotOpen(get, saleId)) === null;
  await waitUntil(check, { timeoutMs: OPEN_TIMEOUT_MS, everyMs: POLL_MS, signal });
  return reason;
}

/** @returns why a purchase of this sale would fail now, or null if it would succeed. Never throws. */
async function whyNotOpen(get: Get, saleId: string): Promise<string | null> {
  try {
    const { ready, dependencies } = (await get('/readyz')) as Partial<ReadyBody>;
    if (ready !== true) {
      const failed = dependencies?.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`) ?? [];
      return `the api is not ready (${failed.join(', ')})`;
    }
    const { state, code } = (await get(`/v1/sales/${saleId}`)) as { state?: string; code?: string };
    return state === 'open' ? null : `sale ${saleId} is ${state ?? code ?? 'not there'}`;
  } catch (error) {
    return `the api does not answer (${reasonOf(error)})`;
  }
}

/** The answer of `/readyz`, 200 or 503. */
interface ReadyBody {
  readonly ready: boolean;
  readonly dependencies: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[];
}
