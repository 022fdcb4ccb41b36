import type { ListeningPort } from './listening-ports.js';
import { StackError } from './stack-error.js';

/** The ports of one instance, all TCP. */
export interface StackPorts {
  /** RocketMQ name server, remoting protocol. */
  readonly namesrv: number;
  /** RocketMQ broker, remoting protocol. It takes `broker - 2` (fast lane) and `broker + 1` (replication) too. */
  readonly broker: number;
  /** RocketMQ proxy, gRPC: what the product talks to. */
  readonly grpc: number;
  /** RocketMQ proxy, remoting protocol. */
  readonly remoting: number;
  /** Prometheus metrics of the broker, HTTP. */
  readonly metrics: number;
  readonly redis: number;
  readonly mariadb: number;
}

export type PortName = keyof StackPorts;

export const DEFAULT_PORTS: StackPorts = Object.freeze({
  namesrv: 19876,
  broker: 20911,
  grpc: 18081,
  remoting: 18080,
  metrics: 15557,
  redis: 16379,
  mariadb: 13306,
});

const PORT_NAMES = Object.keys(DEFAULT_PORTS) as PortName[];

const PORT_LABELS: Record<PortName, string> = {
  namesrv: 'RocketMQ name server',
  broker: 'RocketMQ broker',
  grpc: 'RocketMQ proxy, gRPC',
  remoting: 'RocketMQ proxy, remoting',
  metrics: 'RocketMQ metrics',
  redis: 'Redis',
  mariadb: 'MariaDB',
};

/** A port number that one of our servers will listen on, and what to call it. */
export interface ClaimedPort {
  readonly port: number;
  readonly label: string;
}

/** Every port number behind the given names, the two silent neighbours of the broker included. */
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

/** @throws StackError when the value is not seven different usable ports: a damaged or hand-edited instance file. */
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

/**
 * Below the ports that Linux hands to outgoing connections (32768 and up), so that no client can sit on the port of a
 * server that is down for a moment; above the well-known ones.
 */
const FREE_RANGE = { from: 21_000, to: 32_000 };
const FREE_TRIES_MAX = 200;

/** Picks ports nobody listens on. Two instances that pick at the same moment are kept apart by chance alone. */
export function pickFreePorts(
  listening: readonly Pick<ListeningPort, 'port'>[],
  random: () => number = Math.random,
): StackPorts {
  const taken = new Set([...listening, ...claimedPorts(DEFAULT_PORTS)].map(({ port }) => port));
  const pick = (neighbours: readonly number[]): number => {
    for (let attempt = 0; attempt < FREE_TRIES_MAX; attempt++) {
      const port = FREE_RANGE.from + Math.floor(random() * (FREE_RANGE.to - FREE_RANGE.from));
      const wanted = neighbours.map((offset) => port + offset);
      if (wanted.some((one) => taken.has(one))) continue;
      for (const one of wanted) taken.add(one);
      return port;
    }
    throw new StackError(`No free port found between ${FREE_RANGE.from} and ${FREE_RANGE.to}; stop other servers.`);
  };
  return Object.freeze({
    namesrv: pick([0]),
    broker: pick([-2, 0, 1]),
    grpc: pick([0]),
    remoting: pick([0]),
    metrics: pick([0]),
    redis: pick([0]),
    mariadb: pick([0]),
  });
}
