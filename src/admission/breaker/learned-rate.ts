const SECOND_MS = 1000;

/**
 * How many calls a second are usual: an average that forgets, over whole seconds. It is a true average from its first
 * second on, since it is divided by the weight that it has gathered.
 */
export class LearnedRate {
  #sum = 0;
  #weight = 0;
  #learnedMs = 0;
  /** The second that is being counted; calls before it do not count. */
  #second: number;
  #count = 0;

  constructor(nowMs: number) {
    this.#second = nextSecond(nowMs);
  }

  /** One more call. */
  count(nowMs: number, halfLifeMs: number): void {
    this.#learn(nowMs, halfLifeMs);
    if (Math.floor(nowMs / SECOND_MS) === this.#second) this.#count++;
  }

  /** Begins anew with the next whole second: what came or did not come meanwhile is not usual. */
  resume(nowMs: number): void {
    this.#second = nextSecond(nowMs);
    this.#count = 0;
  }

  perSecond(nowMs: number, halfLifeMs: number): number {
    this.#learn(nowMs, halfLifeMs);
    return this.#weight === 0 ? 0 : this.#sum / this.#weight;
  }

  /** So much time it has learned from. */
  get learnedMs(): number {
    return this.#learnedMs;
  }

  #learn(nowMs: number, halfLifeMs: number): void {
    const ended = Math.floor(nowMs / SECOND_MS) - this.#second;
    if (ended <= 0) return;
    const kept = 0.5 ** (SECOND_MS / halfLifeMs);
    this.#sum = this.#sum * kept + this.#count * (1 - kept);
    this.#weight = this.#weight * kept + (1 - kept);
    const keptOfEmpty = kept ** (ended - 1); // the seconds after it were without a call
    this.#sum *= keptOfEmpty;
    this.#weight = 1 - (1 - this.#weight) * keptOfEmpty;
    this.#learnedMs += ended * SECOND_MS;
    this.#second += ended;
    this.#count = 0;
  }
}

const nextSecond = (nowMs: number): number => Math.floor(nowMs / SECOND_MS) + 1;
