import type { PurchaseAnswer, Reservations } from '../core/ports/stock-store.js';
import { OutageLog } from '../core/outage-log.js';
import type { Log } from '../core/ports/log.js';
import { REPLICA_BARRIER_KEY } from './keys.js';
import { connectRedis, reasonOf, type RedisConnection, type RedisOptions } from './connection.js';

export interface ReplicaBarrier {
  /** @returns whether enough replicas have all earlier writes. False also if Redis is down */
  pass(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * WAIT holds up every command behind it, hence a separate connection. A call during a round joins the next one, because
 * the write of the current round may be older than the call's.
 * @param options `replicas`: number of replicas that must have a deduct before its purchases are accepted; `timeoutMs`:
 * how long they may take
 * @throws OperationalError redis, if the first connect fails
 */
export async function openReplicaBarrier(
  redis: RedisOptions,
  { replicas, timeoutMs }: { readonly replicas: number; readonly timeoutMs: number },
  log: Log,
): Promise<ReplicaBarrier> {
  const connection = await connectRedis({ ...redis, replyTimeoutMs: redis.replyTimeoutMs + timeoutMs }, log);
  const messages = {
    begins: 'no reply to WAIT, so the state of the Redis replicas is unknown',
    ends: 'WAIT gets replies again',
  };
  const outage = new OutageLog(log, messages);
  let underWay: Promise<unknown> = Promise.resolve();
  let next: Promise<boolean> | null = null;
  const round = async (): Promise<boolean> => {
    next = null;
    try {
      const reached = await replicasWith(connection, replicas, timeoutMs);
      outage.end();
      return reached >= replicas;
    } catch (error) {
      outage.failed(reasonOf(error));
      return false;
    }
  };
  return {
    pass: () => {
      next ??= underWay.then(round);
      underWay = next;
      return next;
    },
    close: () => connection.close(),
  };
}

/** WAIT counts from the last write of its own connection, so this function writes first. */
async function replicasWith({ redis }: RedisConnection, replicas: number, timeoutMs: number): Promise<number> {
  const [, reached] = await Promise.all([redis.set(REPLICA_BARRIER_KEY, 1), redis.wait(replicas, timeoutMs)]);
  return reached;
}

/** Reports no units as taken while a fail-over could undo it: by a deduct, an earlier attempt, or a check-back. */
export function withReplicaBarrier<L extends Reservations>(store: L, barrier: ReplicaBarrier | null): L {
  if (barrier === null) return store;
  return {
    ...store,
    async precheck(ref, purchases) {
      const verdict = await store.precheck(ref, purchases);
      return { ...verdict, answers: await replicated(verdict.answers, barrier) };
    },
    async deduct(batch) {
      const verdict = await store.deduct(batch);
      if (verdict.outcome === 'refused') {
        return { ...verdict, answers: await replicated(verdict.answers, barrier) };
      }
      const taken = verdict.outcome === 'deducted' || verdict.outcome === 'already_deducted';
      return taken && !(await barrier.pass()) ? { outcome: 'unreplicated' } : verdict;
    },
    async resolve(ref) {
      const verdict = await store.resolve(ref);
      return verdict === 'deducted' && !(await barrier.pass()) ? 'unreplicated' : verdict;
    },
  };
}

/** True for a held purchase, which is only in Redis. An ordered or ended purchase is also in MySQL. */
const isHeld = (answer: PurchaseAnswer | null): boolean =>
  answer?.outcome === 'replayed' && answer.entry.state === 'held';

/** Returns the answers. An answer that depends on units which too few replicas have becomes `outcome_unknown`. */
async function replicated(
  answers: readonly (PurchaseAnswer | null)[],
  barrier: ReplicaBarrier,
): Promise<readonly (PurchaseAnswer | null)[]> {
  if (!answers.some(isHeld) || (await barrier.pass())) return answers;
  return answers.map((answer) => (isHeld(answer) ? { outcome: 'outcome_unknown' } : answer));
}
