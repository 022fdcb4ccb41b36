import { ClientException } from 'rocketmq-client-nodejs';

/** gRPC status of a call that could not be made, or whose connection broke. The text shows which of the two. */
const GRPC_UNAVAILABLE = 14;
const GRPC_DEADLINE_EXCEEDED = 4;
/** These errors occur before any byte leaves: no listener, no such name, no channel, or a stream refused unread. */
const NEVER_SENT =
  /ECONNREFUSED|No connection established|Name resolution failed|Channel closed before call started|Stream refused/;
/** Matches a deadline that passed while the call still waited for a connection. */
const NEVER_LEFT = /Waiting for LB pick|Waiting for name resolution/;
/** Matches the answer of a broker whose disk is full or that is shutting down. It answers so before it writes. */
const BROKER_CLOSED = /service not available now/i;
/** Matches the answer of a broker that takes no more messages. It also answers so before it writes. */
const BROKER_BUSY = /system busy|broker busy/i;
/** Matches the answer of a proxy that could not connect to the broker of a queue, and therefore sent it nothing. */
const BROKER_UNREACHABLE = /\bconnect to \S+ failed\b/;
/** RocketMQ's codes 4xxxx are refusals before storing, except for the request time-out. */
const REQUEST_TIMEOUT = 40_800;

/**
 * Whether the broker certainly did not store the message. A wrong "no" costs a 503 with `outcome_unknown`, but a wrong
 * "yes" would be a false answer to a buyer. So anything unknown is "no".
 */
export function isCertainlyNotStored(error: unknown): boolean {
  if (error instanceof TypeError) return true; // the client refused before it sent anything
  if (error instanceof ClientException) {
    if (error.code === REQUEST_TIMEOUT) return false;
    return (error.code >= 40_000 && error.code < 50_000) || cannotTake(error) || BROKER_BUSY.test(error.message);
  }
  if (!(error instanceof Error)) return false;
  return error.message === 'Producer is not running now' || wasNeverSent(error);
}

const cannotTake = ({ message }: ClientException): boolean =>
  BROKER_CLOSED.test(message) || BROKER_UNREACHABLE.test(message);

/** Whether to try another broker. Not if this broker is busy, because more sends make all brokers busier. */
export const mayGoToAnotherBroker = (error: unknown): boolean =>
  error instanceof ClientException ? cannotTake(error) : wasNeverSent(error);

/** Returns true if no byte of the call left this process. */
export function wasNeverSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  if (code === GRPC_UNAVAILABLE) return NEVER_SENT.test(error.message);
  return code === GRPC_DEADLINE_EXCEEDED && NEVER_LEFT.test(error.message);
}

/** Returns true if the server gave no answer in time. */
export const isLate = (error: unknown): boolean => codeOf(error) === GRPC_DEADLINE_EXCEEDED;

/** Returns true if the server could not be reached, or the connection to it broke. */
export const isUnreachable = (error: unknown): boolean => codeOf(error) === GRPC_UNAVAILABLE || wasNeverSent(error);

const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown } | undefined)?.code;

/** The proxy forgets a half message at its first commit or rollback, and after a restart. Common and harmless. */
export const isForgottenTransaction = (error: unknown): boolean =>
  error instanceof Error && /cannot found transaction data/.test(error.message);
