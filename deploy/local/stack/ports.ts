import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryLock } from './processes.js';
import { StackError } from './stack-error.js';

/** The ports of one instance, all TCP. */
export interface StackPorts {
  /** RocketMQ name server, remoting protocol. */
  readonly namesrv: number;
  /** RocketMQ broker, remoting protocol. It also uses `broker - 2` (fast lane) and `broker + 1` (replication). */
  readonly broker: number;
  /** RocketMQ proxy, gRPC, used by the product. */
  readonly grpc: number;
  /** RocketMQ proxy, remoting protocol. */
  readonly remoting: number;
  /** Prometheus metrics of the broker, HTTP. */
  readonly metrics: number;
  readonly redis: number;
  /** MySQL, or MariaDB instead. */
  readonly mysql: number;
}

export type PortName = keyof StackPorts;

export const DEFAULT_PORTS: StackPorts = Object.freeze({
  namesrv: 19876,
  broker: 20911,
  grpc: 18081,
  remoting: 18080,
  metrics: 15557,
  redis: 16379,
  mysql: 13306,
});

const PORT_NAMES = Object.keys(DEFAULT_PORTS) as PortName[];

const PORT_LABELS: Record<PortName, string> = {
  namesrv: 'RocketMQ name server',
  broker: 'RocketMQ broker',
  grpc: 'RocketMQ proxy, gRPC',
  remoting: 'RocketMQ proxy, remoting',
  metrics: 'RocketMQ metrics',
  redis: 'Redis',
  mysql: 'MySQL',
};

/** A port number of a server, and its name for people. */
export interface ClaimedPort {
  readonly port: number;
  readonly label: string;
}

/** Returns every port number of the given names, including the two extra ports of the broker. */
export function claimedPorts(ports: StackPorts, names: readonly PortName[] = PORT_NAMES): ClaimedPort[] {
  return names.flatMap((name) => {
    const own = { port: ports[name], label: PORT_LABELS[name] };
    if (name !== 'broker') return [own];
    return [
      own,
      { port: ports.broker - 2, label: 'RocketMQ broker, fast lane' },
      { port: ports.broker + 1, label: 'RocketMQ broker, replication' },
    ];
  });
}

/** The fields that are read from `os.networkInterfaces()`. */
type Interfaces = Readonly<Record<string, readonly { readonly internal: boolean }[] | undefined>>;

/**
 * Returns the broker ports that other machines can reach: these three listen on every address, and RocketMQ has no
 * setting to change that. Empty in a network namespace that has only loopback.
 */
export function exposedPorts(ports: StackPorts, interfaces: Interfaces): ClaimedPort[] {
  const isAlone = Object.values(interfaces).every((addresses = []) => addresses.every(({ internal }) => internal));
  if (isAlone) return [];
  const open = [ports.grpc, ports.remoting, ports.broker + 1];
  return claimedPorts(ports).filter(({ port }) => open.includes(port));
}

/**
 * @throws StackError when the value is not seven different usable ports, as in a damaged or hand-edited instance file
 */
export function parsePorts(value: unknown, source: string): StackPorts {
  const table = (value ?? {}) as Partial<Record<PortName, unknown>>;
  for (const name of PORT_NAMES) {
    const port = table[name];
    if (typeof port !== 'number' || !Number.isInteger(port) || port < 1024 || port > 65535) {
      throw new StackError(`${source} has no usable port for ${PORT_LABELS[name]}; correct it or delete it.`);
    }
  }
  const ports = Object.fromEntries(PORT_NAMES.map((name) => [name, table[name]])) as unknown as StackPorts;
  const claimed = claimedPorts(ports).map(({ port }) => port);
  if (new Set(claimed).size !== claimed.length) {
    throw new StackError(`${source} gives one port to two servers; correct it or delete it.`);
  }
  return Object.freeze(ports);
}

const FREE_TRIES_MAX = 200;

/**
 * Returns the range for free ports: below the ports that Linux assigns to outgoing connections, so that no client can
 * take the port of a server that is briefly down, and above the well-known ports.
 * @param localRange /proc/sys/net/ipv4/ip_local_port_range
 */
export function freeRange(localRange: string): { readonly from: number; readonly to: number } {
  const to = Math.min(32_000, Number(/^\d+/.exec(localRange)?.[0] ?? Infinity));
  // a machine that assigns nearly every port has no such range
  return to < 4_000 ? { from: 21_000, to: 32_000 } : { from: to === 32_000 ? 21_000 : Math.floor(to / 2), to };
}

/** Contains one file for each reserved port with the process that picked it. */
const RESERVATIONS_DIR = join(tmpdir(), `seckill-ports-${process.getuid?.()}`);
const releases: (() => void)[] = [];
process.once('exit', () => releases.forEach((release) => release()));

/**
 * Reserves a port until this process ends, even while its server is down. Two processes that pick at the same moment
 * get different ports.
 * @returns false if the port is already reserved
 */
export function reservePort(port: number): boolean {
  const lock = tryLock(join(RESERVATIONS_DIR, String(port)));
  if ('release' in lock) releases.push(lock.release);
  return 'release' in lock;
}

/** Picks and reserves ports that are neither in use nor reserved by another process. */
export function pickFreePorts(
  listening: readonly Pick<ListeningPort, 'port'>[],
  random: () => number = Math.random,
  reserve: typeof reservePort = reservePort,
): StackPorts {
  const pick = freePortPicker(listening, random, reserve);
  return Object.freeze({
    namesrv: pick([0]),
    broker: pick([-2, 0, 1]),
    grpc: pick([0]),
    remoting: pick([0]),
    metrics: pick([0]),
    redis: pick([0]),
    mysql: pick([0]),
  });
}

/** Picks and reserves a free port. @param neighbours offsets of the extra ports of the server */
export const pickFreePort = (neighbours: readonly number[] = []): number =>
  freePortPicker(listeningPorts(), Math.random, reservePort)([0, ...neighbours]);

/**
 * Returns a picker that never returns the same port twice.
 * @returns a function of the offsets that must be free around the returned port; 0 is the port itself
 */
function freePortPicker(
  listening: readonly Pick<ListeningPort, 'port'>[],
  random: () => number,
  reserve: typeof reservePort,
): (neighbours: readonly number[]) => number {
  const taken = new Set([...listening, ...claimedPorts(DEFAULT_PORTS)].map(({ port }) => port));
  const { from, to } = freeRange(readLocalRange());
  return (neighbours) => {
    for (let attempt = 0; attempt < FREE_TRIES_MAX; attempt++) {
      const port = from + Math.floor(random() * (to - from));
      const wanted = neighbours.map((offset) => port + offset);
      if (wanted.some((one) => taken.has(one) || one > to) || !wanted.every(reserve)) continue;
      for (const one of wanted) taken.add(one);
      return port;
    }
    throw new StackError(`No free port found between ${from} and ${to}; stop other servers.`);
  };
}

function readLocalRange(): string {
  try {
    return readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8');
  } catch {
    return ''; // a sandbox without the file
  }
}

/**
 * Returns the requested ports, and a free port instead of each port in use.
 * @param wanted null for any free port
 */
export function freePortsOr(
  wanted: readonly (number | null)[],
  listening: readonly Pick<ListeningPort, 'port'>[],
  random: () => number = Math.random,
  reserve: typeof reservePort = reservePort,
): number[] {
  const busy = new Set(listening.map(({ port }) => port));
  const pick = freePortPicker(listening, random, reserve);
  return wanted.map((port) => (port === null || busy.has(port) ? pick([0]) : port));
}

/** A listening TCP port, as in /proc/net/tcp. */
export interface ListeningPort {
  readonly port: number;
  /** Inode of the socket, which its holder has open as `socket:[inode]`. */
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

/** Returns all listening ports of this machine on any address, because loopback and wildcard collide. */
export function listeningPorts(): ListeningPort[] {
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => {
    try {
      return parseListeningPorts(readFileSync(file, 'utf8'));
    } catch {
      return []; // a kernel without IPv6 has no tcp6
    }
  });
}

interface PortHolder {
  readonly pid: number;
  /** Command line, cut to a readable length. */
  readonly command: string;
}

/** Java class paths have kilobytes. */
const COMMAND_LENGTH_MAX = 80;

/** Finds the process that has a socket open. Sees only processes of this user, unless run as root. */
function findHolder(inode: string): PortHolder | null {
  const wanted = `socket:[${inode}]`;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry) || !hasOpen(`/proc/${entry}/fd`, wanted)) continue;
    return { pid: Number(entry), command: commandOf(Number(entry)) };
  }
  return null;
}

function hasOpen(fdDir: string, wanted: string): boolean {
  try {
    return readdirSync(fdDir).some((fd) => linkOf(`${fdDir}/${fd}`) === wanted);
  } catch {
    return false; // the process has ended, or belongs to another user
  }
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null; // closed since readdir
  }
}

/** Returns the command line of a process for people. */
function commandOf(pid: number): string {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return command.length > COMMAND_LENGTH_MAX ? `${command.slice(0, COMMAND_LENGTH_MAX)}…` : command;
  } catch {
    return 'unknown command';
  }
}

/** Advice about a busy port of a server. The ports are chosen at the first start of a folder. */
const SERVER_ADVICE = 'start an instance elsewhere: npm start -- --dir <folder> --free-ports --port 0';

/** @param advice part of a sentence: an alternative to stopping the holder */
function portInUseSentence(
  { port, label }: ClaimedPort,
  holder: PortHolder | null,
  advice: string = SERVER_ADVICE,
): string {
  const who = holder === null ? 'another process (of another user?)' : `pid ${holder.pid} (${holder.command})`;
  return `Port ${port} (${label}) is in use by ${who}; stop it, or ${advice}.`;
}

/** @throws StackError that names the first of these ports in use, its process, and what to do */
export function assertPortsFree(claimed: readonly ClaimedPort[], advice?: string): void {
  const listening = listeningPorts();
  for (const one of claimed) {
    const busy = listening.find(({ port }) => port === one.port);
    if (busy !== undefined) throw new StackError(portInUseSentence(one, findHolder(busy.inode), advice));
  }
}
