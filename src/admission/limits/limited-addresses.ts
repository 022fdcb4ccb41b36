import { readAddress } from '../../core/ip-address.js';
import type { AddressShare } from '../../core/places.js';
import type { NetworkSet } from '../lists/network-set.js';
import { addressKey } from './address-key.js';

/** Returns the keys under which a client address is limited. Empty if the address is not counted. */
export type LimitedAddress = (address: string) => readonly AddressShare[];

/**
 * A /56 may use this many times the limit of an address. It is 256 networks of size /64: of one customer, or of as many
 * phones, to which a carrier gives a /64 each.
 */
const TIMES_OF_56 = 4;

/** @param unlimited networks that are not counted: ours, and networks of proxies, which serve many clients */
export function createLimitedAddress(...unlimited: readonly NetworkSet[]): LimitedAddress {
  return (text) => {
    const address = readAddress(text);
    if (address === null || unlimited.some((networks) => networks.has(address))) return [];
    const own = { key: addressKey(text), times: 1 };
    return address.family === 4 ? [own] : [own, { key: `${address.value >> 72n}/56`, times: TIMES_OF_56 }];
  };
}
