import { readAddress } from '../../core/ip-address.js';
import type { NetworkSet } from '../lists/network-set.js';
import { addressKey } from './limits.js';

/** What a client address counts as in the limits that are on from the start; null: it is not counted. */
export type LimitedAddress = (address: string) => string | null;

/**
 * @param unlimited networks whose addresses are not counted: our own, and those of proxies, which stand for many clients
 */
export function createLimitedAddress(...unlimited: readonly NetworkSet[]): LimitedAddress {
  return (text) => {
    const address = readAddress(text);
    if (address === null || unlimited.some((networks) => networks.has(address))) return null;
    return addressKey(text);
  };
}
