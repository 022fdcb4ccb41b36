import { waitUntil } from '../../../deploy/local/stack/probes.js';

const EVERY_MS = 50;
/** No promise of the product: on a busy machine a server may stall for ten seconds. Where a time is promised, it is named. */
const TIMEOUT_MS = 30_000;

/**
 * Waits until `check` says yes; what it throws counts as no.
 * @throws when `timeoutMs` is over, naming what was waited for and what was wrong last
 */
export async function until(
  what: string,
  check: () => boolean | Promise<boolean>,
  timeoutMs = TIMEOUT_MS,
  everyMs = EVERY_MS,
): Promise<void> {
  let last: unknown;
  const tolerant = async (): Promise<boolean> => {
    try {
      last = undefined;
      return await check();
    } catch (error) {
      last = error;
      return false;
    }
  };
  if (await waitUntil(tolerant, { timeoutMs, everyMs })) return;
  throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause: last });
}

/** Reads again and again until there is a value. */
export async function found<T>(
  what: string,
  read: () => Promise<T | null | undefined>,
  timeoutMs?: number,
): Promise<T> {
  let value: T | null | undefined;
  await until(
    what,
    async () => {
      value = await read();
      return value !== null && value !== undefined;
    },
    timeoutMs,
  );
  return value as T;
}
