import type { BatchRef } from '../../../src/core/batch.js';
import type { CheckBackAnswer } from '../../../src/core/ports/channels.js';
import type { Site } from '../simulated-system.js';
import type { Api } from './api.js';

const EVERY_MIN_MS = 250;
const EVERY_MAX_MS = 500;
/** A check-back that is not answered by then was asked in vain. */
const TIMEOUT_MS = 5_000;

export interface CheckBackParts {
  readonly site: Site;
  /** The processes that may be asked. */
  readonly apis: () => readonly Api[];
  /** Hears of every answer before the broker acts on it. */
  readonly onAnswer: (answer: 'commit' | 'rollback', batch: Pick<BatchRef, 'batchId'>) => void;
  /** The broker may have made something visible. */
  readonly onEnd: () => void;
}

/** The side of the broker that asks what became of its half messages: any process, again and again, or never more. */
export class CheckBacks {
  readonly #parts: CheckBackParts;
  readonly #asked = new Set<string>();
  readonly #forgotten = new Set<string>();

  constructor(parts: CheckBackParts) {
    this.#parts = parts;
    parts.site.broker.purchaseChannel((body) => this.#ask(body));
    this.#later();
  }

  /** True when nobody will ever be asked for this half message again. */
  hasForgotten(body: string): boolean {
    return this.#forgotten.has(body);
  }

  #later(): void {
    const { scheduler, rng } = this.#parts.site;
    scheduler.after(rng.range(EVERY_MIN_MS, EVERY_MAX_MS), () => this.#run());
  }

  #run(): void {
    const { site, onEnd } = this.#parts;
    const { faults, scheduler, broker } = site;
    if (!faults.isAway('rocketmq', scheduler.nowMs)) {
      void broker.runChecks().then((asked) => (asked > 0 ? onEnd() : undefined));
    }
    this.#later();
  }

  async #ask(body: string): Promise<CheckBackAnswer> {
    const { site, apis, onAnswer } = this.#parts;
    const { faults, scheduler, rng } = site;
    if (!this.#asked.has(body)) {
      this.#asked.add(body);
      if (faults.befalls('half_forgotten')) this.#forgotten.add(body);
    }
    if (this.#forgotten.has(body)) return 'no_answer';
    const api = rng.pick(apis().filter(({ alive }) => alive));
    if (api === undefined) return 'no_answer';
    const tooLate = new Promise<'no_answer'>((resolve) => {
      scheduler.after(TIMEOUT_MS, () => resolve('no_answer'));
    });
    const answer = await Promise.race([api.checkBack(body), tooLate]);
    if (answer !== 'no_answer') onAnswer(answer, JSON.parse(body) as BatchRef);
    site.count(`check-back: ${answer}`);
    site.trace?.('broker', `check-back: ${answer}`);
    return faults.befalls('check_back_unheard') ? 'no_answer' : answer;
  }
}
