import { Bug } from '../core/errors.js';
import { limitVerdict, type LimitSet, type LimitVerdict, type WindowFigures } from '../core/limits.js';
import type { LimitAnswers, LimitCaller, LimitStore } from '../core/ports/admission-stores.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { limitKeys } from './keys.js';
import { asList } from './replies.js';

/** Number of fields in the reply per request: a word, two fields per window, and the tokens. */
const FIELDS = 6;

export function createLimitStore({ run }: RedisConnection): LimitStore {
  return {
    async take({ endpoint, limits, callers }): Promise<LimitAnswers> {
      const keys = keysOf(endpoint, limits);
      const reply = asList(
        await asOperationalError('count requests', () => run('take-permits', keys, argumentsOf(limits, callers))),
      );
      return readAnswers(reply, limits, callers);
    },
  };
}

/** Returns the keys of an endpoint. Keys of limits that are not set stay unwritten. */
function keysOf(endpoint: string, { ip, user }: LimitSet): string[] {
  return [
    limitKeys.bucket(endpoint),
    ...limitKeys.window(endpoint, 'ip', ip?.windowMs ?? 0),
    ...limitKeys.window(endpoint, 'user', user?.windowMs ?? 0),
  ];
}

function argumentsOf(
  { ip, user, global, subjectsMax }: LimitSet,
  callers: readonly LimitCaller[],
): (string | number)[] {
  return [
    JSON.stringify(callers.map(({ address, userId }) => [address ?? '', userId ?? ''])),
    ip?.limit ?? 0,
    ip?.windowMs ?? 0,
    user?.limit ?? 0,
    user?.windowMs ?? 0,
    subjectsMax,
    global?.ratePerSecond ?? 0,
    global?.burst ?? 0,
  ];
}

function readAnswers(reply: readonly unknown[], limits: LimitSet, callers: readonly LimitCaller[]): LimitAnswers {
  const nowUs = Number(reply[0]);
  let uncounted = 0;
  const verdicts = callers.map(({ address, userId }, index) => {
    const at = 1 + FIELDS * index;
    const ip = readWindow(reply, at + 1);
    const user = readWindow(reply, at + 3);
    if (limits.ip !== null && address !== null && ip === null) uncounted++;
    if (limits.user !== null && userId !== null && user === null) uncounted++;
    return limitVerdict(limits, { nowUs, outcome: readWord(reply[at]), ip, user, tokens: Number(reply[at + 5]) });
  });
  return { verdicts, uncounted };
}

function readWindow(reply: readonly unknown[], at: number): WindowFigures | null {
  const left = Number(reply[at]);
  return left < 0 ? null : { left, oldestBack: Number(reply[at + 1]) };
}

function readWord(word: unknown): LimitVerdict['outcome'] {
  switch (word) {
    case 'allowed':
    case 'rate_limited':
      return word;
    default:
      throw new Bug(`take-permits returned the unknown word ${String(word)}`);
  }
}
