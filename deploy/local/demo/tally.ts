/**
 * Counts what simulated buyers saw, by word:
 * - `tries` to buy, and their answers: `accepted`, `replayed` (same key), `no_answer` or the code of a refusal
 * - results: `ordered`, `failed`, or `late` if the buyer lost patience; a late purchase may end as `missing`
 * - ends of orders: `paid`, `cancelled`, `expired`
 */
export class Tally {
  readonly #all = new Map<string, number>();
  readonly #shown = new Map<string, number>();

  add(word: string): void {
    this.#all.set(word, this.of(word) + 1);
  }

  of(word: string): number {
    return this.#all.get(word) ?? 0;
  }

  all(): Record<string, number> {
    return Object.fromEntries(this.#all);
  }

  /** Returns the counts since the last call. */
  lap(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const [word, count] of this.#all) {
      const more = count - (this.#shown.get(word) ?? 0);
      if (more > 0) counts[word] = more;
      this.#shown.set(word, count);
    }
    return counts;
  }
}

/** The order of these words. Every other word is a refusal. */
const FIRST = ['accepted', 'ordered', 'failed', 'late', 'missing', 'replayed', 'no_answer'];
const MOVES = ['paid', 'payment_declined', 'cancelled', 'expired', 'refund_due', 'wrong_state', 'left_the_queue'];

const inWords = (word: string): string => word.replaceAll('_', ' ');

/** Formats a line for people: `120 tries: 40 accepted, 39 ordered; refused: 60 sold out; then: 20 paid`. */
export function countsLine(counts: Readonly<Record<string, number>>): string {
  const { tries = 0, ...rest } = counts;
  const some = (words: readonly string[]): string =>
    words
      .filter((word) => rest[word])
      .map((word) => `${rest[word]} ${inWords(word)}`)
      .join(', ');
  const refusals = Object.keys(rest)
    .filter((word) => !FIRST.includes(word) && !MOVES.includes(word))
    .sort((one, other) => (rest[other] ?? 0) - (rest[one] ?? 0));
  const parts = [some(FIRST), prefixed('refused: ', some(refusals)), prefixed('then: ', some(MOVES))];
  const said = parts.filter((part) => part !== '').join('; ');
  return `${tries} purchase attempts${said === '' ? '' : `: ${said}`}`;
}

const prefixed = (prefix: string, text: string): string => (text === '' ? '' : prefix + text);
