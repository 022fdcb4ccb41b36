import { readAddress } from '../core/ip-address.js';

/** The value of the `Host` header, without its port. */
const HOST = /^(\[[^\]]*\]|[^:]*)(?::\d*)?$/;

/**
 * Checks whether a request was meant for this server: its `Host` must be `localhost`, an IP address, or the name on
 * which the server listens. Any other name may belong to a page that made its own name resolve to our address (DNS
 * rebinding). The operator's browser would then let that page read data that only the browser's network may read. No
 * page can have an IP address or our `localhost` as its name. A request without the header does not come from a
 * browser.
 * @param own the value of OPERATORS_HOST or METRICS_HOST
 */
export const createHostCheck = (own: string): ((header: string | undefined) => boolean) => {
  const names = new Set(['localhost', own.toLowerCase()]);
  return (header) => {
    if (header === undefined) return true;
    const [, name = ''] = HOST.exec(header) ?? [];
    return names.has(name.toLowerCase()) || readAddress(name.replace(/^\[|\]$/g, '')) !== null;
  };
};
