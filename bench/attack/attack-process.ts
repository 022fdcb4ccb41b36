import { randomBytes } from 'node:crypto';
import { addressIn, ATTACKS, SOURCES, type Attack } from './attackers.js';
import { SlowHeaders, type SlowTally } from './slow-headers.js';
import { readRecords, type BuyerSlice } from '../load/buyers.js';
import { inChildProcess, ownCpuSeconds } from '../load/child.js';
import { requestFrame, type LoadPlan } from '../load/load.js';
import { OUTCOME_CODE, outcomeCodeOf } from '../load/open-loop.js';
import { RequestSender } from '../load/request-sender.js';

export interface AttackPlan {
  /** Port on 127.0.0.1. */
  readonly port: number;
  /** Address of the purchase endpoint. */
  readonly path: string;
  readonly seconds: number;
  /** Requests per second of each kind; 0 if none. */
  readonly rates: Readonly<Record<Attack, number>>;
  /** Accounts of the flood, each used once. The other kinds use the tokens of the first accounts. */
  readonly accounts: BuyerSlice;
  /** Requests that were already answered, to be replayed. Empty without signatures. */
  readonly captured: BuyerSlice;
  /** Connections that never finish their headers. */
  readonly slowSockets: number;
}

/** The requests of one kind of attacker, and their answers. */
export interface AttackTally {
  readonly sent: number;
  readonly answered: number;
  /** Answers by status. */
  readonly byStatus: Readonly<Record<string, number>>;
}

export interface AttackResult {
  readonly tallies: Readonly<Record<Attack, AttackTally>>;
  /** OUTCOME_CODE of each account of the flood as one byte, in base64. */
  readonly outcomes: string;
  readonly slow: SlowTally;
  /** Time of the first request and of the last answer, Unix ms. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** CPU seconds of the attackers. */
  readonly cpuSeconds: number;
}

const TICK_MS = 1;
/** How long answers may take after the end of the attack. */
const TAIL_MS = 10_000;
/** Maximum number of different requests of a kind: more than the limit of a user alone would stop. */
const PREPARED_MAX = 1024;

/** Size of a large body: four times what the api accepts. */
const OVERSIZED_BYTES = 16 * 1024;

/** Complete requests of attackers, made in advance, because attackers share the machine with the measured programs. */
class AttackRequests {
  readonly #head: Buffer;
  readonly #tail: Buffer;
  readonly #oversizedHead: string;

  constructor(plan: Pick<LoadPlan, 'port' | 'path'>) {
    const { head, tail } = requestFrame(plan);
    this.#head = Buffer.from(head, 'latin1');
    this.#tail = Buffer.from(tail, 'latin1');
    this.#oversizedHead = head.replace(/Content-Length: \d+/, `Content-Length: ${OVERSIZED_BYTES}`);
  }

  /** The body of an honest buyer. */
  genuine(record: Buffer): Buffer {
    return Buffer.concat([this.#head, record, this.#tail]);
  }

  /** The token of an account, with an invented signature. */
  forged(record: Buffer): Buffer {
    return this.genuine(Buffer.from(withForgedToken(record.toString('latin1')), 'latin1'));
  }

  /** A valid token, and a body that the api refuses to read. */
  oversized(record: Buffer): Buffer {
    const body = `{"quantity":1,"x":"${'x'.repeat(OVERSIZED_BYTES)}`.slice(0, OVERSIZED_BYTES - 2) + '"}';
    return Buffer.from(`${this.#oversizedHead}${record.toString('latin1')}\r\n${body}`, 'latin1');
  }
}

/** Replaces the signature of the token in the header lines of a buyer, and keeps every other byte. */
function withForgedToken(record: string): string {
  return record.replace(
    /^(Authorization: Bearer [^.\r\n]+\.[^.\r\n]+\.)([^\r\n]+)/,
    (_all, shown: string, signature: string) =>
      shown + randomBytes(signature.length).toString('base64url').slice(0, signature.length),
  );
}

/** Returns the n-th request of each kind. */
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
  const outcomes = new Uint8Array(accounts.count);
  const requests = requestsOf(plan);
  const attackersOf = (kind: Attack): { sender: RequestSender; byStatus: Record<string, number> } => {
    const { connections, addresses } = SOURCES[kind];
    const byStatus: Record<string, number> = {};
    const sender = new RequestSender({
      port,
      connections,
      addressOf: (turn) => addressIn(kind, turn % addresses),
      inTurn: true,
      rate: rates[kind],
      total: Math.min(rates[kind] * seconds, kind === 'flood' ? accounts.count : Infinity),
      request: (place) => {
        if (kind === 'flood') outcomes[place] = OUTCOME_CODE.unknown;
        return requests[kind](place);
      },
      onAnswer: (place, status) => {
        byStatus[status] = (byStatus[status] ?? 0) + 1;
        if (kind === 'flood') outcomes[place] = outcomeCodeOf(status);
      },
    });
    return { sender, byStatus };
  };
  const attackers = ATTACKS.map((kind) => ({ kind, ...attackersOf(kind) }));
  const senders = attackers.filter(({ kind }) => rates[kind] > 0).map(({ sender }) => sender);
  await Promise.all(senders.map((sender) => sender.start()));
  const slow = new SlowHeaders({
    port,
    path,
    sockets: plan.slowSockets,
    addressOf: (place) => addressIn('slow', place),
  });
  const cpuBefore = ownCpuSeconds();
  const startedAtMs = Date.now();
  await untilDone(senders, seconds * 1000);
  const endedAtMs = Date.now();
  for (const sender of senders) sender.end();
  const tallies = attackers.map(({ kind, sender, byStatus }): [Attack, AttackTally] => [
    kind,
    { sent: sender.sent, answered: sender.answered, byStatus },
  ]);
  return {
    tallies: Object.fromEntries(tallies) as AttackResult['tallies'],
    outcomes: Buffer.from(outcomes).toString('base64'),
    slow: slow.end(),
    startedAtMs,
    endedAtMs,
    cpuSeconds: ownCpuSeconds() - cpuBefore,
  };
}

/** Attacks until the time is over, in a separate process, then waits for the remaining answers. */
export const runAttack = inChildProcess<AttackPlan, AttackResult>(import.meta.url, attack);

/** Sends for `ms`, then waits a limited time for the answers. */
function untilDone(senders: readonly RequestSender[], ms: number): Promise<void> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const elapsedMs = performance.now() - startedMs;
      if (elapsedMs < ms) return senders.forEach((sender) => sender.sendDue(elapsedMs));
      if (!senders.every((sender) => sender.isAnswered) && elapsedMs < ms + TAIL_MS) return;
      clearInterval(timer);
      resolve();
    }, TICK_MS);
  });
}
