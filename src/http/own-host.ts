import { readAddress } from '../core/ip-address.js';

/** The value of the `Host` header, without its port. */
const HOST = /^(\[[^\]]*\]|[^:]*)(?::\d*)?$/;

/**
 * Checks whether a request was meant for this server: for `localhost`, an IP address or the name that it listens on. Any
 * other name may belong to a page whose name was pointed at our address (DNS rebinding): the operator's browser would then
 * read, on behalf of that page, data that only the browser's network may read. No page can have an IP address or our
 * `localhost` as its name. A request without the header does not come from a browser.
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
