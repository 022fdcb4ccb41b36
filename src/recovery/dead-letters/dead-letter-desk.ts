import { OperationalError } from '../../core/errors.js';
import type {
  DeadLetterBook,
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterSummary,
  StoredDeadLetter,
} from '../../core/ports/dead-letters.js';
import { discardLetter, type DiscardAnswer, type DiscardPorts } from './discard-letter.js';
import type { ReplayAnswer, ReplayOptions } from './replay-answer.js';
import { replayLetter, type ReplayPorts } from './replay-letter.js';

export interface DeadLetterDeskPorts extends ReplayPorts, DiscardPorts {
  readonly letters: Omit<DeadLetterBook, 'park'>;
  readonly ledger: ReplayPorts['ledger'] & DiscardPorts['ledger'];
  readonly book: ReplayPorts['book'] & DiscardPorts['book'];
}

/** How many letters are worked on, and how fast. */
export interface Pace {
  /** Letters begun in a second, at most. */
  readonly perSecond: number;
  /** Letters under way at once, at most. */
  readonly inFlightMax: number;
}

/** What became of one letter of many; `fault` when a dependency failed at it, so that it stays as it was. */
export type LetterResult =
  | { readonly letterId: string; readonly answer: ReplayAnswer | DiscardAnswer }
  | { readonly letterId: string; readonly fault: OperationalError };

/** Letters read in one page. */
const PAGE = 200;

/** What an operator does with dead letters: looks at them, replays them, gives them up; one by one or many. */
export class DeadLetterDesk {
  readonly #ports: DeadLetterDeskPorts;

  constructor(ports: DeadLetterDeskPorts) {
    this.#ports = ports;
  }

  /** @throws OperationalError mysql */
  list(filter: DeadLetterFilter, page: DeadLetterPage): Promise<DeadLetterSummary[]> {
    return this.#ports.letters.list(filter, page);
  }

  /** @throws OperationalError mysql */
  count(filter: DeadLetterFilter): Promise<number> {
    return this.#ports.letters.count(filter);
  }

  /** @throws OperationalError mysql */
  find(letterId: string): Promise<StoredDeadLetter | null> {
    return this.#ports.letters.find(letterId);
  }

  /** @throws OperationalError; the letter is still `parked` */
  replay(letterId: string, options: ReplayOptions): Promise<ReplayAnswer> {
    return replayLetter(letterId, this.#ports, options);
  }

  /** @throws OperationalError; the letter is still `parked` */
  discard(letterId: string, actor: string): Promise<DiscardAnswer> {
    return discardLetter(letterId, this.#ports, { actor });
  }

  /** Every letter that matches, oldest first, at most `max`. @throws OperationalError mysql */
  async *matching(filter: DeadLetterFilter, max: number, behindId?: string): AsyncGenerator<DeadLetterSummary> {
    let left = max;
    let afterId = behindId;
    while (left > 0) {
      const after = afterId === undefined ? {} : { afterId };
      const page = await this.#ports.letters.list(filter, { ...after, max: Math.min(PAGE, left) });
      yield* page;
      afterId = page.at(-1)?.letterId;
      left -= page.length;
      if (page.length < PAGE || afterId === undefined) return;
    }
  }

  /**
   * The parked letters that match: first those whose replay was begun and has not ended, since an earlier run that was
   * stopped left them half way; then the others. @throws OperationalError mysql
   */
  async *parkedMatching(filter: DeadLetterFilter, max: number): AsyncGenerator<DeadLetterSummary> {
    let left = max;
    for (const replayBegun of [true, false]) {
      for await (const letter of this.matching({ ...filter, state: 'parked', replayBegun }, left)) {
        left--;
        yield letter;
      }
    }
  }

  /**
   * Works through letters at a pace. After a fault of a dependency no new letter is begun; those under way come to
   * their end. The same when `signal` aborts.
   * @param onResult told of each letter as it ends
   * @throws OperationalError mysql when the letters could not be read
   */
  async workThrough(
    letterIds: AsyncIterable<string> | Iterable<string>,
    work: (letterId: string) => Promise<ReplayAnswer | DiscardAnswer>,
    { perSecond, inFlightMax }: Pace,
    onResult: (result: LetterResult) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#ports;
    const underWay = new Set<Promise<void>>();
    let failed = false;
    let nextMs = clock.nowMs();
    const one = async (letterId: string): Promise<void> => {
      try {
        onResult({ letterId, answer: await work(letterId) });
      } catch (fault) {
        if (!(fault instanceof OperationalError)) throw fault;
        failed = true;
        onResult({ letterId, fault });
      }
    };
    try {
      for await (const letterId of letterIds) {
        if (underWay.size >= inFlightMax) await Promise.race(underWay);
        const waitMs = nextMs - clock.nowMs();
        if (waitMs > 0) await clock.sleep(waitMs, signal);
        if (failed || signal.aborted) break;
        nextMs = Math.max(nextMs, clock.nowMs()) + 1000 / perSecond;
        const running: Promise<void> = one(letterId).finally(() => underWay.delete(running));
        underWay.add(running);
      }
    } finally {
      await Promise.all(underWay);
    }
  }
}
