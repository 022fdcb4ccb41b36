import { queueRules } from '../../src/admission/queue/queue-rules.js';
import { TICK_MS, WaitingRooms } from '../../src/admission/queue/waiting-rooms.js';
import { readKeyring } from '../../src/core/hmac.js';
import { Seals } from '../../src/admission/sign/seals.js';
import { systemClock } from '../../src/programs/system-clock.js';

/**
 * What a full waiting room costs: memory per ticket, and the time of a join, a poll and a tick. Time in the
 * room is made up, so that minutes take seconds.
 * Run: node --expose-gc --import tsx bench/admission/waiting-room.ts [tickets]
 */
const TICKETS = Number(process.argv[2] ?? 100_000);
/** Each buyer asks every 20 s: less often than the rules say, since the cost is measured per poll. */
const POLLS_PER_TICK = Math.ceil((TICKETS * TICK_MS) / 20_000);
const OPENS_AT_MS = Date.UTC(2030, 0, 1);
const SALE = { saleId: '7', opensAtMs: OPENS_AT_MS };

/** Long enough that each timer is checked again: a ticket is good for 60 s. */
const WAIT_SECONDS = 65;
let nowMs = OPENS_AT_MS - WAIT_SECONDS * 1000 - TICK_MS;
let rules = queueRules.parse({ mode: 'on', order: 'lot', admitPerSecond: 0 });
const rooms = new WaitingRooms({
  rules: () => rules,
  seals: new Seals(readKeyring('k1:a-secret-for-the-bench-of-forty-bytes-ok')),
  isSoldOut: () => false,
  clock: { ...systemClock, nowMs: () => nowMs, monotonicMs: () => nowMs },
});

function heapBytes(): number {
  if (globalThis.gc === undefined) throw new Error('start node with --expose-gc');
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

const buyer = (index: number): { userId: string; roles: string[] } => ({ userId: `user-${index}`, roles: [] });

/** CPU time, which does not count what other programs take: the mean of all calls, and the slowest measurement. */
class Timings {
  #calls = 0;
  #sumUs = 0;
  #maxUs = 0;

  /** @param calls how many of what is counted the function does */
  time(calls: number, run: () => void): void {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    this.#calls += calls;
    this.#sumUs += user + system;
    this.#maxUs = Math.max(this.#maxUs, user + system);
  }

  get mean(): string {
    return `mean ${(this.#sumUs / this.#calls).toFixed(1)} µs of ${this.#calls}`;
  }

  get row(): string {
    return `${this.mean}, slowest ${(this.#maxUs / 1000).toFixed(1)} ms`;
  }
}

const joins = new Timings();
const polls = new Timings();
const ticks = { quiet: new Timings(), letsIn: new Timings(), ends: new Timings() };
let next = 0;

/** One tick, with the buyers whose turn it is to ask. */
function tick(timings: Timings, isAsked = true): void {
  nowMs += TICK_MS;
  timings.time(1, () => rooms.runOnce());
  if (!isAsked) return;
  polls.time(POLLS_PER_TICK, () => {
    for (let i = 0; i < POLLS_PER_TICK; i++) rooms.join(SALE, buyer(next++ % TICKETS));
  });
}

const before = heapBytes();
joins.time(TICKETS, () => {
  for (let index = 0; index < TICKETS; index++) rooms.join(SALE, buyer(index));
});
const bytes = heapBytes() - before;

for (let seconds = 0; seconds < WAIT_SECONDS; seconds++) {
  for (let i = 0; i < 1000 / TICK_MS; i++) tick(ticks.quiet);
}
nowMs = OPENS_AT_MS + TICK_MS;
rooms.runOnce();

rules = { ...rules, admitPerSecond: 1000 };
for (let i = 0; i < 100; i++) tick(ticks.letsIn);
const waiting = rooms.waiting;
for (let i = 0; i < (rules.idleMs * 2) / TICK_MS; i++) tick(ticks.ends, false);

console.log(`tickets             ${TICKETS}`);
console.log(
  `memory              ${Math.round(bytes / TICKETS)} bytes a ticket, ${(bytes / 2 ** 20).toFixed(1)} MiB in all`,
);
console.log(`join                ${joins.mean}`);
console.log(`poll                ${polls.mean}`);
console.log(`tick, none admitted ${ticks.quiet.row}`);
console.log(`tick, 1000 a second ${ticks.letsIn.row} (${TICKETS - waiting} let in)`);
console.log(`tick, all have left ${ticks.ends.row} (${rooms.waiting} still wait)`);
