import type { Artifacts } from '../artifacts.js';
import type { CertificateFiles } from '../certificates.js';
import type { StackPaths } from '../paths.js';
import type { PortName, StackPorts } from '../ports.js';
import type { ProbeResult } from '../probes.js';
import type { Versions } from '../versions.js';

/** In the order they are shown. `mysql` may be a MariaDB; `proxy` is the RocketMQ proxy with the broker inside. */
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

/** What is special about one server. Starting, stopping and watching are the same for all: managed-server.ts. */
export interface ServerSpec {
  readonly name: ServerName;
  /** For people. */
  readonly label: string;
  readonly portNames: readonly PortName[];
  /** The longest from start to ready, in granted time: crash recovery of a big data folder. */
  readonly startTimeoutMs: number;
  /** The longest from SIGTERM to the end, in granted time; after it comes SIGKILL. */
  readonly stopTimeoutMs: number;
  /** Writes configuration and first data, and returns the command that starts it. */
  prepare(tools: Tools, signal?: AbortSignal): Promise<LaunchCommand>;
  /** Asks the running server whether it serves. */
  probe(): Promise<ProbeResult>;
  /** Helps a server that is slow to get ready for a known reason. Called after each failed probe of a start. */
  hasten?(reason: string): Promise<void>;
}

/**
 * What an answer of the servers outlives. MySQL flushes every commit in both.
 * - `process`: the death of any process; with the machine, up to a second of Redis and of the broker goes
 * - `host`: the death of the machine too: Redis and the broker flush before they answer
 */
export const DURABILITIES = ['process', 'host'] as const;
export type Durability = (typeof DURABILITIES)[number];

/**
 * How long the broker waits before it acts.
 * - `production`: as in the shipped configuration
 * - `test`: a check-back after 3 s instead of 10 s, and redeliveries after 1 s instead of 10 s
 */
export type BrokerTiming = 'production' | 'test';

/** What a spec is made from. */
export interface Instance {
  readonly paths: StackPaths;
  readonly ports: StackPorts;
  readonly versions: Versions;
  readonly durability: Durability;
  /** Default `production`. */
  readonly timing?: BrokerTiming;
  /** Where the servers speak TLS only, and ask for a certificate: the files. Left out or null: plain text. */
  readonly certificates?: CertificateFiles | null;
}
