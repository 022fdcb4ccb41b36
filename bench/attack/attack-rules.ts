import { addressIn } from './addresses.js';

/** How far back a limit looks. An honest address comes up to 50 times in it, see `honestAddresses`. */
const WINDOW_MS = 10_000;

/**
 * What an operator would have in force: an address that is known to be bad, twice what an honest address needs, a few
 * tries for a buyer, and what the system can take in all.
 * @param sign sales whose purchases have to be signed, and the keys (`id:secret`) of the instance; null: none
 */
export function attackRules(sign: { readonly keys: string; readonly saleIds: readonly string[] } | null): object {
  return {
    lists: {
      mode: 'on',
      addresses: { deny: [addressIn('flood', 0), '192.0.2.0/24', '198.51.100.0/24'] },
      agents: { deny: ['python-requests', 'headless'] },
    },
    limits: {
      mode: 'on',
      purchase: {
        ip: { limit: 100, windowMs: WINDOW_MS },
        user: { limit: 10, windowMs: WINDOW_MS },
        global: { ratePerSecond: 20_000, burst: 5000 },
      },
      leaky: { ratePerSecond: 8000, waitMaxMs: 200 },
    },
    ...(sign === null ? {} : { sign: { mode: 'on', sales: sign.saleIds, keys: keyIdsOf(sign.keys) } }),
  };
}

/** The ids in `id:secret,id:secret`. */
export const keyIdsOf = (keys: string): string[] =>
  keys.split(',').map((key) => key.slice(0, Math.max(0, key.indexOf(':'))));
