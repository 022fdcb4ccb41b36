import { isIP } from 'node:net';
import type { SecureContext } from 'node:tls';
import { ChannelCredentials, type ChannelOptions } from '@grpc/grpc-js';
import type { Tls } from '../core/tls.js';

const PLAIN = ChannelCredentials.createInsecure();

/** Credentials by target. The clients of a process share a connection only if they use the same object. */
const encrypted = new WeakMap<SecureContext, Map<string, ChannelCredentials>>();

/**
 * Returns the credentials of a channel to `host:port`, the same object for as long as the certificates are the same.
 * Neither the RocketMQ client nor gRPC re-reads a private authority, but a context of Node can be replaced.
 */
export function channelCredentials(tls: Tls | null, target: string): ChannelCredentials {
  if (tls === null) return PLAIN;
  const { context } = tls;
  const known = encrypted.get(context) ?? new Map<string, ChannelCredentials>();
  encrypted.set(context, known);
  let credentials = known.get(target);
  if (credentials === undefined) {
    credentials = ChannelCredentials.createFromSecureContext(context, {
      checkServerIdentity: (_asked, certificate) => {
        const flaws = hostsIn(target).map((host) => tls.identityFlaw(host, certificate));
        return flaws.includes(undefined) ? undefined : flaws[0];
      },
    });
    known.set(target, credentials);
  }
  return credentials;
}

/** TLS allows no address as server name, which gRPC passes, and Node warns. Certificates are still checked for it. */
const NO_NAME = 'rocketmq.invalid';

export function tlsChannelOptions(tls: Tls | null, target: string): ChannelOptions {
  if (tls === null) return {};
  const name = tls.serverName ?? hostsIn(target)[0] ?? '';
  return { 'grpc.ssl_target_name_override': isIP(name) === 0 ? name : NO_NAME };
}

/** @param target `host:port`, or for a route with several addresses `ipv4:host:port,host:port` */
const hostsIn = (target: string): string[] =>
  target
    .replace(/^ipv[46]:/, '')
    .split(',')
    .map((address) => address.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''));
