import type { Random } from '../random.js';

/** What a soak breaks. `stalled`: SIGSTOP, later SIGCONT; `killed`: kill -9, then started again; `reset`: by the proxy. */
export const FAULT_KINDS = [
  'api_killed',
  'worker_killed',
  'keeper_killed',
  'api_stalled',
  'worker_stalled',
  'keeper_stalled',
  'redis_killed',
  'redis_stalled',
  'redis_reset',
  'scripts_flushed',
  'mysql_killed',
  'mysql_stalled',
  'mysql_reset',
  'broker_killed',
  'broker_reset',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** How long a stall lasts, in ms; 0 for everything else. */
  readonly stallMs: number;
}

/** Least and longest stall, in ms: a program stays below the 10 s after which its deliveries go to another. */
const STALLS: Partial<Record<FaultKind, readonly [minMs: number, maxMs: number]>> = {
  api_stalled: [3_000, 8_000],
  worker_stalled: [3_000, 8_000],
  keeper_stalled: [3_000, 8_000],
  redis_stalled: [5_000, 5_000],
  mysql_stalled: [5_000, 10_000],
};

/** Draws faults by chance, and none a second time before every other one had its turn: a long soak has them all. */
export class FaultBag {
  readonly #random: Random;
  #left: FaultKind[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  /** @param keeperMayDie false: the one keeper there is must live on, so that its memory can be watched */
  draw({ keeperMayDie }: { readonly keeperMayDie: boolean }): Fault {
    for (;;) {
      if (this.#left.length === 0) this.#left = this.#random.shuffled(FAULT_KINDS);
      const kind = this.#left.pop() as FaultKind;
      if (kind === 'keeper_killed' && !keeperMayDie) continue;
      const [minMs, maxMs] = STALLS[kind] ?? [0, 0];
      return { kind, stallMs: this.#random.whole(minMs, maxMs) };
    }
  }
}
