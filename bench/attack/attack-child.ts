import { readRecords, type BuyerSlice } from '../load/buyers.js';
import { ownCpuSeconds, serveChild } from '../load/child.js';
import { HEARD } from '../load/open-loop.js';
import { addressIn } from './addresses.js';
import type { AttackPlan, AttackResult, AttackTally } from './attack.js';
import { ATTACKS, CROWDS, type Attack } from './attackers.js';
import { Crowd } from './crowd.js';
import { AttackRequests } from './requests.js';
import { SlowHeaders } from './slow-headers.js';

const TICK_MS = 1;
/** How long answers may take after the end of the attack. */
const TAIL_MS = 10_000;
/** So many different requests of a kind, at most: more than a limit of the user would stop by itself. */
const PREPARED_MAX = 1024;

/** The request of each kind and place. */
function requestsOf(plan: AttackPlan): Readonly<Record<Attack, (place: number) => Buffer>> {
  const requests = new AttackRequests(plan);
  const recordOf = recordsOf(plan.accounts);
  const prepared = (slice: BuyerSlice, make: (record: Buffer) => Buffer): ((place: number) => Buffer) => {
    const record = recordsOf(slice);
    const made = Array.from({ length: Math.min(slice.count, PREPARED_MAX) }, (_, place) => make(record(place)));
    return (place) => made[place % made.length] as Buffer;
  };
  return {
    flood: (place) => requests.genuine(recordOf(place)),
    forged: prepared(plan.accounts, (record) => requests.forged(record)),
    replayed: prepared(plan.captured, (record) => requests.genuine(record)),
    oversized: prepared(plan.accounts, (record) => requests.oversized(record)),
  };
}

function recordsOf(slice: BuyerSlice): (place: number) => Buffer {
  const records = readRecords(slice);
  return (place) => records.subarray(place * slice.recordBytes, (place + 1) * slice.recordBytes);
}

async function attack(plan: AttackPlan): Promise<AttackResult> {
  const { port, path, seconds, accounts, rates } = plan;
  const heard = new Uint8Array(accounts.count);
  const requests = requestsOf(plan);
  const crowdOf = (kind: Attack): Crowd => {
    const { connections, addresses } = CROWDS[kind];
    const total = Math.min(rates[kind] * seconds, kind === 'flood' ? accounts.count : Infinity);
    const addressOf = (place: number): string => addressIn(kind, place % addresses);
    const request = (place: number): Buffer => {
      if (kind === 'flood') heard[place] = HEARD.unknown;
      return requests[kind](place);
    };
    const note = (place: number, status: number): void => {
      heard[place] = status < 300 ? HEARD.ok : status < 500 ? HEARD.fail : HEARD.unknown;
    };
    const more = kind === 'flood' ? { heard: note } : {};
    return new Crowd({ port, connections, addressOf, rate: rates[kind], total, request, ...more });
  };
  const crowds = new Map(ATTACKS.filter((kind) => rates[kind] > 0).map((kind) => [kind, crowdOf(kind)]));
  await Promise.all([...crowds.values()].map((crowd) => crowd.start()));
  const slow = new SlowHeaders({
    port,
    path,
    sockets: plan.slowSockets,
    addressOf: (place) => addressIn('slow', place),
  });
  const cpuBefore = ownCpuSeconds();
  const startedAtMs = Date.now();
  await untilDone([...crowds.values()], seconds * 1000);
  const endedAtMs = Date.now();
  const none: AttackTally = { sent: 0, answered: 0, byStatus: {} };
  const tallies = Object.fromEntries(ATTACKS.map((kind) => [kind, crowds.get(kind)?.end() ?? none]));
  return {
    tallies: tallies as AttackResult['tallies'],
    heard: Buffer.from(heard).toString('base64'),
    slow: slow.end(),
    startedAtMs,
    endedAtMs,
    cpuSeconds: ownCpuSeconds() - cpuBefore,
  };
}

/** Sends for `ms`, then waits for the answers, for a bounded time. */
function untilDone(crowds: readonly Crowd[], ms: number): Promise<void> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const elapsedMs = performance.now() - startedMs;
      if (elapsedMs < ms) return crowds.forEach((crowd) => crowd.sendDue(elapsedMs));
      if (!crowds.every((crowd) => crowd.isAnswered) && elapsedMs < ms + TAIL_MS) return;
      clearInterval(timer);
      resolve();
    }, TICK_MS);
  });
}

serveChild<AttackPlan, AttackResult>(attack);
