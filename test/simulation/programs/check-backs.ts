import type { BatchRef } from '../../../src/core/batch.js';
import type { CheckBackAnswer, OpenHalf } from '../../../src/core/ports/channels.js';
import type { SimulatedSystem } from '../simulated-system.js';
import type { Api } from './api.js';

const EVERY_MIN_MS = 250;
const EVERY_MAX_MS = 500;
/** The broker drops later answers. */
const TIMEOUT_MS = 5_000;

export interface CheckBackParts {
  readonly system: SimulatedSystem;
  /** The processes that may be asked. */
  readonly apis: () => readonly Api[];
  /** Called with every answer before the broker acts on it. */
  readonly onAnswer: (answer: 'commit' | 'rollback', batch: Pick<BatchRef, 'batchId'>) => void;
  /** The broker may have made something visible. */
  readonly onEnd: () => void;
}

/** Asks any api about each open half message, like the broker, and finally gives up. */
export class CheckBacks {
  readonly #parts: CheckBackParts;
  readonly #asked = new Set<string>();
  readonly #givenUp = new Set<string>();

  constructor(parts: CheckBackParts) {
    this.#parts = parts;
    parts.system.broker.purchaseChannel((half) => this.#ask(half));
    this.#later();
  }

  /** Returns true if this half message will never be checked back again. */
  hasGivenUp(body: string): boolean {
    return this.#givenUp.has(body);
  }

  #later(): void {
    const { scheduler, rng } = this.#parts.system;
    scheduler.after(rng.range(EVERY_MIN_MS, EVERY_MAX_MS), () => this.#run());
  }

  #run(): void {
    const { system, onEnd } = this.#parts;
    const { faults, scheduler, broker } = system;
    if (!faults.isAway('rocketmq', scheduler.nowMs)) {
      void broker.runChecks().then((asked) => (asked > 0 ? onEnd() : undefined));
    }
    this.#later();
  }

  async #ask(half: OpenHalf): Promise<CheckBackAnswer> {
    const { body } = half;
    const { system, apis, onAnswer } = this.#parts;
    const { faults, scheduler, rng } = system;
    if (!this.#asked.has(body)) {
      this.#asked.add(body);
      if (faults.happens('half_never_checked')) this.#givenUp.add(body);
    }
    if (this.#givenUp.has(body)) return 'no_answer';
    const api = rng.pick(apis().filter(({ alive }) => alive));
    if (api === undefined) return 'no_answer';
    const tooLate = new Promise<'no_answer'>((resolve) => {
      scheduler.after(TIMEOUT_MS, () => resolve('no_answer'));
    });
    const answer = await Promise.race([api.checkBack(half), tooLate]);
    if (answer !== 'no_answer') onAnswer(answer, JSON.parse(body) as BatchRef);
    system.count(`check-back: ${answer}`);
    system.trace?.('broker', `check-back: ${answer}`);
    return faults.happens('check_back_answer_lost') ? 'no_answer' : answer;
  }
}
