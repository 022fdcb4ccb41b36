import type { StackEnv } from '../../deploy/local/stack/env.js';
import { TcpProxy } from './harness/tcp-proxy.js';

export type ProxiedName = 'redis' | 'mysql' | 'broker';

/** A server with a proxy before it, and the environment that leads a program through that. */
export class ProxiedServer {
  readonly name: ProxiedName;
  readonly proxy: TcpProxy;
  readonly env: Readonly<Record<string, string>>;

  private constructor(name: ProxiedName, proxy: TcpProxy, stack: StackEnv) {
    this.name = name;
    this.proxy = proxy;
    this.env = envThrough(name, proxy.address, stack);
  }

  static async open(name: ProxiedName, stack: StackEnv): Promise<ProxiedServer> {
    return new ProxiedServer(name, await TcpProxy.open(targetOf(name, stack)), stack);
  }
}

function targetOf(name: ProxiedName, { REDIS_URL, MYSQL_URL, ROCKETMQ_ENDPOINT }: StackEnv): string {
  switch (name) {
    case 'redis':
      return new URL(REDIS_URL).host;
    case 'mysql':
      return new URL(MYSQL_URL).host;
    case 'broker':
      return ROCKETMQ_ENDPOINT;
  }
}

function envThrough(name: ProxiedName, address: string, stack: StackEnv): Record<string, string> {
  switch (name) {
    case 'redis':
      return { REDIS_URL: withHost(stack.REDIS_URL, address) };
    case 'mysql':
      return { MYSQL_URL: withHost(stack.MYSQL_URL, address) };
    case 'broker': // it hands out its own address, which leads past the proxy
      return { ROCKETMQ_ENDPOINT: address, ROCKETMQ_ROUTE: 'endpoint' };
  }
}

function withHost(url: string, host: string): string {
  const parsed = new URL(url);
  parsed.host = host;
  return parsed.toString().replace(/\/$/, '');
}
