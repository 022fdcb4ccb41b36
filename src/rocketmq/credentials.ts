import { createHmac } from 'node:crypto';

/** As whom we connect to a broker with access control. */
export interface BrokerCredentials {
  readonly accessKey: string;
  readonly accessSecret: string;
}

/** Null where neither is set: then requests carry no name, as a broker without access control expects. */
export const credentialsOf = ({ key, secret }: { readonly key: string; readonly secret: string }) =>
  key === '' ? null : ({ accessKey: key, accessSecret: secret } satisfies BrokerCredentials);

/**
 * The fields of a remoting request with a signature (AclClientRPCHook.java of 5.4.0): HMAC-SHA1 over the values of all
 * fields in the order of their names, then the body. The code of the request is not in it, and neither is a time.
 */
export function signFields(
  fields: Readonly<Record<string, string>>,
  body: Buffer,
  { accessKey, accessSecret }: BrokerCredentials,
): Record<string, string> {
  const named: Record<string, string> = { ...fields, AccessKey: accessKey };
  const hmac = createHmac('sha1', accessSecret);
  for (const name of Object.keys(named).sort()) hmac.update(named[name] as string);
  return { ...named, Signature: hmac.update(body).digest('base64') };
}

/** Headers of a gRPC call, for a call that does not go through the client. Only the date is signed. */
export function signedHeaders({ accessKey, accessSecret }: BrokerCredentials): Record<string, string> {
  const date = new Date().toISOString();
  const signature = createHmac('sha1', accessSecret).update(date).digest('hex');
  return {
    'x-mq-date-time': date,
    authorization: `MQv2-HMAC-SHA1 Credential=${accessKey}, SignedHeaders=x-mq-date-time, Signature=${signature}`,
  };
}

/** What a server with access control says to a request that has no signature. */
const ANONYMOUS = /username cannot be null/;

/** A part of a sentence, after the name of the server: that it refuses, and what to do. @param reason as it gave it */
export const accessRefusal = (reason: string): string =>
  ANONYMOUS.test(reason)
    ? 'has access control: set ROCKETMQ_ACCESS_KEY and ROCKETMQ_ACCESS_SECRET'
    : `refuses ROCKETMQ_ACCESS_KEY or ROCKETMQ_ACCESS_SECRET: correct them (it says: ${reason})`;

/** Status codes of the proxy: it does not know who asks, or does not let them. */
const [UNAUTHORIZED, FORBIDDEN] = [40_100, 40_300];

/** Why the proxy refuses who asks; null when an error of the client says something else. */
export function accessRefusalIn(error: unknown): string | null {
  const { code, message = '' } = (error ?? {}) as { readonly code?: unknown; readonly message?: string };
  if (code !== UNAUTHORIZED && code !== FORBIDDEN) return null;
  return accessRefusal(message.replace(/^\[request-id=.*?, response-code=\d+\] /, ''));
}
