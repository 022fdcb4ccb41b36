import { createHmac } from 'node:crypto';
import type { Section } from '../core/config/schema.js';
import { Tls, type TlsNames } from '../core/tls.js';

export interface BrokerCredentials {
  readonly accessKey: string;
  readonly accessSecret: string;
  /** Sent with each request. Set only for a temporary key. */
  readonly securityToken?: string | undefined;
}

export interface BrokerAccess {
  /** Null if requests carry no login, as a broker without access control expects. */
  readonly credentials: BrokerCredentials | null;
  /** TLS of gRPC. Null or absent: not encrypted. */
  readonly tls?: Tls | null;
  /** TLS of the admin protocol. */
  readonly adminTls?: Tls | null;
}

export const ROCKETMQ_TLS_NAMES: TlsNames = {
  prefix: 'ROCKETMQ_TLS',
  address: 'its address',
  off: 'set ROCKETMQ_TLS to off (or to grpc, if only name servers and brokers do not use TLS)',
};

/** Access by configuration, because clients share connections only if they pass the same credentials object. */
const ACCESSES = new WeakMap<Section<'brokerAccess'>, BrokerAccess>();

export function brokerAccessOf(section: Section<'brokerAccess'>): BrokerAccess {
  const known = ACCESSES.get(section) ?? makeAccess(section);
  ACCESSES.set(section, known);
  return known;
}

/** Builds the access. Secret and token are read when a request is signed, so that values from files are current. */
function makeAccess(access: Section<'brokerAccess'>): BrokerAccess {
  const { key, secret, sessionToken } = access;
  const tls = access.tls === 'off' ? null : new Tls(ROCKETMQ_TLS_NAMES, access);
  const credentials = {
    accessKey: key,
    get accessSecret() {
      return secret();
    },
    get securityToken() {
      return sessionToken() || undefined;
    },
  };
  return { credentials: key === '' ? null : credentials, tls, adminTls: access.tls === 'on' ? tls : null };
}

/**
 * Signs a remoting request (AclClientRPCHook.java of 5.4.0): HMAC-SHA1 over the values of all fields, sorted by name,
 * then the body. Covers neither the request code nor a time.
 */
export function signFields(
  fields: Readonly<Record<string, string>>,
  body: Buffer,
  { accessKey, accessSecret, securityToken }: BrokerCredentials,
): Record<string, string> {
  const named: Record<string, string> = { ...fields, AccessKey: accessKey };
  if (securityToken !== undefined) named.SecurityToken = securityToken;
  const hmac = createHmac('sha1', accessSecret);
  for (const name of Object.keys(named).sort()) hmac.update(named[name] as string);
  return { ...named, Signature: hmac.update(body).digest('base64') };
}

/** Returns headers for a gRPC call that does not go through the client. Only the date is signed. */
export function signedHeaders({ accessKey, accessSecret, securityToken }: BrokerCredentials): Record<string, string> {
  const date = new Date().toISOString();
  const signature = createHmac('sha1', accessSecret).update(date).digest('hex');
  return {
    'x-mq-date-time': date,
    ...(securityToken === undefined ? {} : { 'x-mq-session-token': securityToken }),
    authorization: `MQv2-HMAC-SHA1 Credential=${accessKey}, SignedHeaders=x-mq-date-time, Signature=${signature}`,
  };
}

/** Reply of a server with access control to a request that is not signed. */
const ANONYMOUS = /username cannot be null/;

/** End of a sentence about a server: that it refuses, and what to do. @param reason as the server gave it */
export const accessRefusal = (reason: string): string =>
  ANONYMOUS.test(reason)
    ? 'has access control: set ROCKETMQ_ACCESS_KEY and ROCKETMQ_ACCESS_SECRET'
    : `refuses ROCKETMQ_ACCESS_KEY or ROCKETMQ_ACCESS_SECRET: correct them (it says: ${reason})`;

/** Status codes of the proxy for an unknown or unauthorized caller. */
const [UNAUTHORIZED, FORBIDDEN] = [40_100, 40_300];

/** Returns why the proxy refuses the caller, or null if the error has another cause. */
export function accessRefusalIn(error: unknown): string | null {
  const { code, message = '' } = (error ?? {}) as { readonly code?: unknown; readonly message?: string };
  if (code !== UNAUTHORIZED && code !== FORBIDDEN) return null;
  return accessRefusal(message.replace(/^\[request-id=.*?, response-code=\d+\] /, ''));
}
