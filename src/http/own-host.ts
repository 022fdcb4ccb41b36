import { readAddress } from '../core/ip-address.js';

/** The value of the header `Host`, without its port. */
const HOST = /^(\[[^\]]*\]|[^:]*)(?::\d*)?$/;

/**
 * Says whether a request was sent to us: to `localhost`, to an IP address or to the name that we listen on. Another name may be that of a
 * page whose name was pointed at our address (DNS rebinding): the browser of an operator would read for it what only its network may read.
 * No page can name itself by an IP address or `localhost` of ours. A request without the header comes from no browser.
 * @param own as in OPERATORS_HOST or METRICS_HOST
 */
export const createHostCheck = (own: string): ((header: string | undefined) => boolean) => {
  const names = new Set(['localhost', own.toLowerCase()]);
  return (header) => {
    if (header === undefined) return true;
    const [, name = ''] = HOST.exec(header) ?? [];
    return names.has(name.toLowerCase()) || readAddress(name.replace(/^\[|\]$/g, '')) !== null;
  };
};
