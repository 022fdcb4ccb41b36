import type { Batch } from '../../core/batch.js';
import { assertNever, OperationalError } from '../../core/errors.js';
import type { Order } from '../../core/order.js';
import { requestName } from '../../core/purchase.js';
import type { DeadLetterFilter, DeadLetterPage, DeadLetterSummary } from './dead-letter-store.js';
import { lookUpRows } from '../../orders/draft-rows.js';
import { discardDeadLetter, type DiscardAnswer, type DiscardPorts } from './discard-dead-letter.js';
import { type ReplayAnswer, replayDeadLetter, type ReplayOptions, type ReplayPorts } from './replay-dead-letter.js';
import { withoutUndefined } from '../../core/without-undefined.js';

export interface Pace {
  readonly perSecond: number;
  readonly inFlightMax: number;
}

/** `fault`: a dependency failed, and the dead letter is unchanged. */
export type DeadLetterResult =
  | { readonly deadLetterId: string; readonly answer: ReplayAnswer | DiscardAnswer }
  | { readonly deadLetterId: string; readonly fault: OperationalError };

const PAGE = 200;

export type DeadLetterAdmin = ReturnType<typeof createDeadLetterAdmin>;

/** Reads throw OperationalError mysql. */
export function createDeadLetterAdmin(ports: ReplayPorts & DiscardPorts) {
  const { deadLetters, repository, clock } = ports;
  const list = (filter: DeadLetterFilter, page: DeadLetterPage) => deadLetters.list(filter, page);

  /** Lists the oldest first. */
  async function* matching(
    filter: DeadLetterFilter,
    max: number,
    behindId?: string,
  ): AsyncGenerator<DeadLetterSummary> {
    let left = max;
    let afterId = behindId;
    while (left > 0) {
      const page = await list(filter, { ...withoutUndefined({ afterId }), max: Math.min(PAGE, left) });
      yield* page;
      afterId = page.at(-1)?.deadLetterId;
      left -= page.length;
      if (page.length < PAGE || afterId === undefined) return;
    }
  }

  return {
    list,
    matching,
    count: (filter: DeadLetterFilter) => deadLetters.count(filter),
    find: (deadLetterId: string) => deadLetters.find(deadLetterId),

    /** Returns the row of each purchase in batch order, or null if a purchase has no row. */
    async ordersOf(batch: Batch): Promise<(Order | null)[]> {
      const rows = await lookUpRows([batch], repository);
      return batch.purchases.map((purchase) => rows.get(requestName(batch.saleId, purchase)) ?? null);
    },

    /** @throws OperationalError; the dead letter is still `parked` */
    replay: (deadLetterId: string, options: ReplayOptions) => replayDeadLetter(deadLetterId, ports, options),

    /** @throws OperationalError; the dead letter is still `parked` */
    discard: (deadLetterId: string, actor: string) => discardDeadLetter(deadLetterId, ports, { actor }),

    /** Lists unfinished replays of an earlier run first. */
    async *parkedMatching(filter: DeadLetterFilter, max: number): AsyncGenerator<DeadLetterSummary> {
      let left = max;
      for (const replayBegun of [true, false]) {
        for await (const deadLetter of matching({ ...filter, state: 'parked', replayBegun }, left)) {
          left--;
          yield deadLetter;
        }
      }
    },

    /** After a fault or abort, starts no further ones and finishes those under way. @throws OperationalError mysql */
    async workThrough(
      deadLetterIds: AsyncIterable<string> | Iterable<string>,
      work: (deadLetterId: string) => Promise<ReplayAnswer | DiscardAnswer>,
      { perSecond, inFlightMax }: Pace,
      onResult: (result: DeadLetterResult) => void,
      signal: AbortSignal,
    ): Promise<void> {
      const underWay = new Set<Promise<void>>();
      let failed = false;
      let nextMs = clock.monotonicMs();
      const one = async (deadLetterId: string): Promise<void> => {
        try {
          onResult({ deadLetterId, answer: await work(deadLetterId) });
        } catch (fault) {
          if (!(fault instanceof OperationalError)) throw fault;
          failed = true;
          onResult({ deadLetterId, fault });
        }
      };
      try {
        for await (const deadLetterId of deadLetterIds) {
          if (underWay.size >= inFlightMax) await Promise.race(underWay);
          const waitMs = nextMs - clock.monotonicMs();
          if (waitMs > 0) await clock.sleep(waitMs, signal);
          if (failed || signal.aborted) break;
          nextMs = Math.max(nextMs, clock.monotonicMs()) + 1000 / perSecond;
          const running: Promise<void> = one(deadLetterId).finally(() => underWay.delete(running));
          underWay.add(running);
        }
      } finally {
        await Promise.all(underWay);
      }
    },
  };
}

/** The result for one dead letter in a bulk run, as a list shows it. */
export interface ReadResult {
  readonly word: string;
  /** A note for the operator. Null if the word says enough. */
  readonly note: string | null;
  /** Whether the dead letter reached the state that was requested. */
  readonly isEnd: boolean;
}

export function readResult(result: DeadLetterResult, end: 'replayed' | 'discarded'): ReadResult {
  if ('fault' in result) return { word: 'fault', note: result.fault.message, isEnd: false };
  const { answer } = result;
  switch (answer.outcome) {
    case 'replayed':
    case 'already_recorded':
    case 'discarded':
      return { word: answer.outcome, note: answer.note, isEnd: true };
    case 'unfinished':
    case 'unreadable':
    case 'not_held':
    case 'forged':
      return { word: answer.outcome, note: answer.note, isEnd: false };
    case 'already_closed':
      return { word: answer.outcome, note: `it is ${answer.state}`, isEnd: answer.state === end };
    case 'contended':
      return { word: answer.outcome, note: 'another transaction writes the same rows; try again', isEnd: false };
    case 'not_found':
      return { word: answer.outcome, note: null, isEnd: false };
    default:
      return assertNever(answer);
  }
}
