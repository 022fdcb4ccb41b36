import type { Artifacts } from '../artifacts.js';
import type { CertificateFiles } from '../certificates.js';
import type { StackPaths } from '../paths.js';
import type { PortName, StackPorts } from '../ports.js';
import type { ProbeResult } from '../probes.js';
import type { Versions } from '../versions.js';

/** The servers in display order. `mysql` may be a MariaDB; `proxy` is the RocketMQ proxy with the broker inside. */
export const SERVER_NAMES = ['redis', 'mysql', 'namesrv', 'proxy'] as const;
export type ServerName = (typeof SERVER_NAMES)[number];

/** The programs that servers are started with. */
export interface Tools {
  readonly java: string;
  readonly artifacts: Artifacts;
}

export interface LaunchCommand {
  readonly file: string;
  readonly args: readonly string[];
}

/** The properties of one server. Starting, stopping and watching are the same for all servers: managed-server.ts. */
export interface ServerSpec {
  readonly name: ServerName;
  /** Name for people. */
  readonly label: string;
  readonly portNames: readonly PortName[];
  /** Maximum granted time from start to ready, including crash recovery of a big data folder. */
  readonly startTimeoutMs: number;
  /** Maximum granted time from SIGTERM to the end, followed by SIGKILL. */
  readonly stopTimeoutMs: number;
  /** Writes the configuration and the first data, and returns the start command. */
  prepare(tools: Tools, signal?: AbortSignal): Promise<LaunchCommand>;
  /** Asks the running server whether it serves. */
  probe(): Promise<ProbeResult>;
  /** Helps a server that becomes ready slowly for a known reason. Called after each failed probe of a start. */
  hasten?(reason: string): Promise<void>;
}

/**
 * The failures that an acknowledged write survives. MySQL flushes every commit in both modes.
 * - `process`: the death of any process; if the machine dies, up to a second of Redis and broker data is lost
 * - `host`: also the death of the machine: Redis and the broker flush before they answer
 */
export const DURABILITIES = ['process', 'host'] as const;
export type Durability = (typeof DURABILITIES)[number];

/**
 * The delays of the broker.
 * - `production`: as in the shipped configuration
 * - `test`: a check-back after 3 s instead of 10 s, and redeliveries after 1 s instead of 10 s
 */
export type BrokerTiming = 'production' | 'test';

/** The inputs of a server spec. */
export interface Instance {
  readonly paths: StackPaths;
  readonly ports: StackPorts;
  readonly versions: Versions;
  readonly durability: Durability;
  /** Defaults to `production`. */
  readonly timing?: BrokerTiming;
  /** Server id of a MySQL with a binary log, which replicas can follow. Absent: no binary log. */
  readonly serverId?: number | undefined;
  /**
   * The certificate files of servers that only accept TLS with a client certificate. Null or omitted for plain text.
   */
  readonly certificates?: CertificateFiles | null;
}
