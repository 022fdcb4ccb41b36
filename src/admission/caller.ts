import type { Endpoint } from './endpoint.js';

/** One request of a buyer, as far as the layers look at it. */
export interface Caller {
  readonly endpoint: Endpoint;
  /** The IP address of the client as text, IPv4 never in IPv6 clothes; empty when its connection is gone. */
  readonly address: string;
  /** The header User-Agent; empty when there is none. */
  readonly agent: string;
}
