import type { Heard } from '../../src/reconcile/check-sale.js';
import type { Answer } from './http-client.js';

/** What clients heard, one entry per purchase of one sale: `userId/requestId` → ok, fail or unknown. */
export class OpLog {
  readonly entries = new Map<string, Heard>();

  /**
   * Notes one try: ok if any try was 2xx, fail if every one was refused, else unknown.
   * @param answer null: the connection broke, or nothing came in time
   */
  hear(key: string, answer: Answer | null): void {
    const heard = heardIn(answer);
    const before = this.entries.get(key) ?? heard;
    if (before === 'ok' || heard === 'ok') this.entries.set(key, 'ok');
    else this.entries.set(key, before === heard ? heard : 'unknown');
  }

  count(heard: Heard): number {
    return [...this.entries.values()].filter((entry) => entry === heard).length;
  }
}

export function heardIn(answer: Answer | null): Heard {
  if (answer === null || answer.status === 500) return 'unknown';
  if (answer.status < 300) return 'ok';
  return answer.json.code === 'outcome_unknown' ? 'unknown' : 'fail';
}
