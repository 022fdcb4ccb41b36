import { lookup } from 'node:dns/promises';
import { readFile, statfs } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { kindOfAddress, type FreeShare, type Reach } from '../../core/doctor/reach.js';

// Finds out what this machine can see of servers: their location, and ports and disks of local servers.

/** @throws what the resolver throws for a name that it does not know */
export async function reachOf(host: string, port: number): Promise<Reach> {
  const { address } = await lookup(host);
  const isHere = kindOfAddress(address) === 'loopback' || ownAddresses().has(address);
  const isPublic = kindOfAddress(address) === 'public';
  const isWide = isHere && hasOtherAddresses() && (await wildcardPorts()).has(port);
  return {
    at: isHere ? 'this_machine' : isPublic ? 'public' : 'private',
    open: isPublic ? 'public_address' : isWide ? 'every_address' : null,
  };
}

/** @param path a path on the server's machine. It exists here only if the server runs here */
export async function freeShareOf(path: string, { at }: Reach): Promise<FreeShare> {
  if (at !== 'this_machine') return null;
  try {
    const { bavail, bfree, blocks } = await statfs(path);
    const usable = blocks - bfree + bavail; // like df, without the blocks that only root may fill
    return usable === 0 ? null : bavail / usable;
  } catch {
    return null; // the path is inside a container, or only its own user may read it
  }
}

const addresses = () => Object.values(networkInterfaces()).flatMap((found) => found ?? []);
const ownAddresses = (): ReadonlySet<string> => new Set(addresses().map(({ address }) => address));
const hasOtherAddresses = (): boolean => addresses().some(({ internal }) => !internal);

/** State LISTEN in /proc/net/tcp (include/net/tcp_states.h of Linux). */
const LISTEN = '0A';

/** Returns the ports of this machine that are open on every address. Empty if there is no /proc. */
async function wildcardPorts(): Promise<ReadonlySet<number>> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((file) => readFile(file, 'utf8').catch(() => '')),
  );
  return new Set(tables.flatMap(wildcardPortsIn));
}

/** @param table columns: sl local_address rem_address st …; address and port are hexadecimal */
export const wildcardPortsIn = (table: string): number[] =>
  table.split('\n').flatMap((line) => {
    const [, local = '', , state] = line.trim().split(/\s+/);
    const [, port] = /^0+:([0-9A-F]{4})$/.exec(local) ?? [];
    return state === LISTEN && port !== undefined ? [Number.parseInt(port, 16)] : [];
  });
