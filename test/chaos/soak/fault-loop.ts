import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../random.js';
import { breakThings, type Breakable } from './break-things.js';
import { FaultBag, type Fault, type FaultKind } from './draw-faults.js';
import { LIFE_MIN_MS } from './flatness.js';
import type { Pulse } from './pulse.js';

/** A fault that is over, as buyers saw it; times in ms. */
export interface FaultTold {
  readonly kind: FaultKind;
  /** Since the soak began. */
  readonly atMs: number;
  readonly stallMs: number;
  /** From its begin until a purchase of each open sale, sent after it bit, was accepted. */
  readonly yesMs: number;
  /** From its begin until such a purchase was an order. */
  readonly ordersMs: number;
}

export interface FaultLoopParts {
  readonly world: Breakable;
  readonly pulse: Pulse;
  readonly runMs: number;
  readonly everyMs: number;
  readonly onFault: (told: FaultTold) => void;
}

/** A soak that is at least so long judges the memory of every program. */
export const JUDGED_FROM_MS = 300_000;
/** What the harness gives its successor to get ready. */
const RESTART_MS = 60_000;
/** A broker needs up to half a minute to start, and everything 30 s to heal; the rest is a shared machine. */
const HEAL_MAX_MS = 90_000;

/**
 * Breaks one thing after the other until `runMs` are over; who needs longer than `everyMs` to heal gets his time.
 * @throws when a fault did not bite, when something did not heal, or when a program ended by itself
 */
export async function breakEvery(parts: FaultLoopParts): Promise<void> {
  const { world, runMs, everyMs, onFault } = parts;
  const { signal } = world;
  const beganMs = Date.now();
  // a row of choices of its own: what the crowd draws meanwhile must not change the faults of a seed
  const bag = new FaultBag(createRandom(`${world.arena.seed} faults of a soak`));
  for (;;) {
    const elapsedMs = Date.now() - beganMs;
    const dueMs = everyMs * (Math.floor(elapsedMs / everyMs) + 1);
    if (dueMs >= runMs) break;
    await sleep(dueMs - elapsedMs, undefined, { signal });
    const fault = bag.draw({ keeperMayDie: keeperMayDie(dueMs, runMs) });
    onFault({ ...(await breakOnce(parts, fault)), atMs: dueMs });
    for (const { name, logFile } of world.fleet.endedAlone()) {
      throw new Error(`the ${name} ended, and no fault had killed it; its log is ${logFile}`);
    }
  }
  await sleep(Math.max(0, beganMs + runMs - Date.now()), undefined, { signal });
}

/** In the first half only, and early enough for the last keeper to be judged; where nobody is judged, at any time. */
export const keeperMayDie = (elapsedMs: number, runMs: number): boolean =>
  runMs < JUDGED_FROM_MS || elapsedMs < Math.min(runMs / 2, runMs - LIFE_MIN_MS - RESTART_MS);

async function breakOnce({ world, pulse }: FaultLoopParts, fault: Fault): Promise<Omit<FaultTold, 'atMs'>> {
  const { arena, saleIds } = world;
  const beganMs = Date.now();
  const undo = await breakThings(world, fault);
  const bitMs = Date.now();
  const since = async (what: string, isBack: () => boolean): Promise<number> => {
    await arena.until(`${fault.kind}: ${what}`, isBack, HEAL_MAX_MS);
    return Date.now() - beganMs;
  };
  const [yesMs, ordersMs] = await Promise.all([
    since('buyers of every sale hear yes again', () => pulse.yesSince(bitMs, saleIds)),
    since('their purchases become orders again', () => pulse.ordersSince(bitMs, saleIds)),
    undo(),
  ]);
  arena.faultEnded();
  return { ...fault, yesMs, ordersMs };
}
