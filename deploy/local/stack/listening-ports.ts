import { readFileSync } from 'node:fs';

/** A TCP port somebody listens on, as /proc/net/tcp tells it. */
export interface ListeningPort {
  readonly port: number;
  /** Number of the socket; the holder has it open as `socket:[inode]`. */
  readonly inode: string;
}

/** State LISTEN in /proc/net/tcp (include/net/tcp_states.h of Linux). */
const LISTEN = '0A';

/** Reads the table of /proc/net/tcp or /proc/net/tcp6. Columns: sl local_address rem_address st … inode. */
export function parseListeningPorts(table: string): ListeningPort[] {
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[3] === LISTEN)
    .map((columns) => ({
      port: Number.parseInt(columns[1]?.split(':').at(-1) ?? '', 16),
      inode: columns[9] ?? '',
    }))
    .filter(({ port }) => Number.isInteger(port));
}

/** All listening ports of this machine, on any address: loopback and wildcard collide with each other. */
export function listeningPorts(): ListeningPort[] {
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => {
    try {
      return parseListeningPorts(readFileSync(file, 'utf8'));
    } catch {
      return []; // a kernel without IPv6 has no tcp6
    }
  });
}
