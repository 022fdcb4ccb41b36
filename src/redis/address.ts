import { withoutUndefined } from '../core/without-undefined.js';
/** Login for the servers. Empty if they need none. */
interface RedisLogin {
  readonly username?: string;
  readonly password?: string;
}

export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

export type RedisAddress =
  | { readonly kind: 'server'; readonly url: string }
  | {
      readonly kind: 'sentinel';
      readonly sentinels: readonly RedisHost[];
      /** Name under which sentinels monitor the master. */
      readonly master: string;
      readonly db: number;
      /** Login for the servers. Sentinels need none. */
      readonly login: RedisLogin;
    }
  | { readonly kind: 'cluster'; readonly nodes: readonly RedisHost[]; readonly login: RedisLogin };

const SENTINEL_PORT = 26379;
const SERVER_PORT = 6379;
const SENTINELS = /^rediss?\+sentinel:\/\/(?:([^@/]*)@)?([^@/]+)\/([^/]+)(?:\/(\d+))?$/;
const CLUSTER = /^rediss?\+cluster:\/\/(?:([^@/]*)@)?([^@/]+)\/?$/;

/** True if servers and sentinels are reached over TLS. */
export const isByTls = (url: string): boolean => url.startsWith('rediss');

/** Parses an address that the configuration has already checked. */
export function readRedisAddress(url: string): RedisAddress {
  const [, sentinelLogin, sentinels, master, db] = SENTINELS.exec(url) ?? [];
  if (sentinels !== undefined && master !== undefined) {
    const hosts = hostsIn(sentinels, SENTINEL_PORT);
    return { kind: 'sentinel', sentinels: hosts, master, db: Number(db ?? 0), login: loginIn(sentinelLogin) };
  }
  const [, login, nodes] = CLUSTER.exec(url) ?? [];
  if (nodes !== undefined) return { kind: 'cluster', nodes: hostsIn(nodes, SERVER_PORT), login: loginIn(login) };
  return { kind: 'server', url };
}

/** Formats the address for a person, without its password. */
export function namedAddress(address: RedisAddress): string {
  switch (address.kind) {
    case 'server':
      return URL.canParse(address.url) ? new URL(address.url).host : address.url;
    case 'sentinel':
      return `${address.master} of the sentinels ${named(address.sentinels)}`;
    case 'cluster':
      return `the cluster ${named(address.nodes)}`;
  }
}

const named = (hosts: readonly RedisHost[]): string => hosts.map(({ host, port }) => `${host}:${port}`).join(', ');

/** @param text a comma-separated list of `host`, `host:port` or `[::1]:port` */
function hostsIn(text: string, portUsual: number): RedisHost[] {
  return text.split(',').map((one) => {
    const [, host, port] = /^(.*?)(?::(\d+))?$/.exec(one) ?? [];
    return { host: (host ?? '').replace(/^\[|\]$/g, ''), port: Number(port ?? portUsual) };
  });
}

function loginIn(text: string | undefined): RedisLogin {
  if (text === undefined) return {};
  const [username = '', password] = text.split(':').map(decodeURIComponent);
  return { ...(username === '' ? {} : { username }), ...withoutUndefined({ password }) };
}
