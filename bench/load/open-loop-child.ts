import { connect, type Socket } from 'node:net';
import { readRecords } from './buyers.js';
import { ownCpuSeconds, serveChild } from './child.js';
import { AnswerReader } from './http-answers.js';
import { LatencyHistogram } from './latency-histogram.js';
import { requestFrame } from './load.js';
import { dueAtMs, dueCount, HEARD, type OpenLoopPlan, type OpenLoopResult } from './open-loop.js';

/** Raw sockets: an agent of node:http would cost more CPU than the server spends on a refusal. */

const TICK_MS = 1;
/** How long answers may take after the last request was due. */
const TAIL_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

interface Connection {
  readonly socket: Socket;
  readonly answers: AnswerReader;
  /** Place of the request that waits for its answer, or -1. */
  place: number;
}

class OpenLoopClient {
  readonly #plan: OpenLoopPlan;
  readonly #records: Buffer;
  readonly #frame: { head: Buffer; tail: Buffer };
  readonly #total: number;
  readonly #heard: Uint8Array;
  readonly #connections = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #all = new LatencyHistogram();
  readonly #accepted = new LatencyHistogram();
  readonly #sendDelay = new LatencyHistogram();
  #startedAt = 0;
  #lastAnswerAt = 0;
  #sent = 0;
  #answered = 0;
  #ended = false;
  #open = 0;

  constructor(plan: OpenLoopPlan) {
    this.#plan = plan;
    this.#records = readRecords(plan.buyers);
    const { head, tail } = requestFrame(plan);
    this.#frame = { head: Buffer.from(head, 'latin1'), tail: Buffer.from(tail, 'latin1') };
    this.#total = Math.min(plan.buyers.count, Math.round(plan.rate * plan.seconds));
    this.#heard = new Uint8Array(plan.buyers.count);
  }

  async run(): Promise<OpenLoopResult> {
    await Promise.all(
      Array.from({ length: this.#plan.connections }, (_, turn) => this.#connect(this.#addressOf(turn))),
    );
    const cpuBefore = ownCpuSeconds();
    const startedAtMs = Date.now();
    this.#startedAt = performance.now();
    await this.#untilDone();
    this.#ended = true;
    for (const { socket } of this.#connections) socket.destroy();
    const all = this.#all.summary();
    return {
      sent: this.#sent,
      answered: this.#answered,
      accepted: this.#accepted.count,
      errors: this.#sent - this.#answered,
      startedAtMs,
      endedAtMs: startedAtMs + this.#lastAnswerAt,
      latency: all,
      acceptedLatency: this.#accepted.summary(),
      sendDelay: this.#sendDelay.summary(),
      ranOutOfBuyers: this.#total < Math.round(this.#plan.rate * this.#plan.seconds),
      cpuSeconds: ownCpuSeconds() - cpuBefore,
      heard: Buffer.from(this.#heard).toString('base64'),
    };
  }

  #untilDone(): Promise<void> {
    const lastDueMs = dueAtMs(this.#total, this.#plan.rate);
    return new Promise((resolve) => {
      const timer = setInterval(() => {
        this.#sendDue();
        const done = this.#sent === this.#total && this.#open === 0;
        if (!done && this.#elapsedMs() < lastDueMs + TAIL_MS) return;
        clearInterval(timer);
        resolve();
      }, TICK_MS);
    });
  }

  #elapsedMs = (): number => performance.now() - this.#startedAt;

  /** Sends what is due, as far as connections are free; what has to wait is late, and its latency says so. */
  #sendDue(): void {
    const due = Math.min(this.#total, dueCount(this.#elapsedMs(), this.#plan.rate));
    while (this.#sent < due) {
      // The one that was used last is the cheapest; with addresses of their own each has its part.
      const connection = this.#plan.addresses === undefined ? this.#idle.pop() : this.#idle.shift();
      if (connection === undefined) return;
      this.#send(connection, this.#sent++);
    }
  }

  #send(connection: Connection, place: number): void {
    const { recordBytes } = this.#plan.buyers;
    const record = this.#records.subarray(place * recordBytes, (place + 1) * recordBytes);
    connection.place = place;
    this.#open++;
    this.#heard[place] = HEARD.unknown;
    this.#sendDelay.record(dueAtMs(place, this.#plan.rate), this.#elapsedMs());
    connection.socket.write(Buffer.concat([this.#frame.head, record, this.#frame.tail]));
  }

  #take(connection: Connection, status: number, closes: boolean): void {
    const { place } = connection;
    const now = this.#elapsedMs();
    const due = dueAtMs(place, this.#plan.rate);
    const accepted = status >= 200 && status < 300;
    this.#answered++;
    this.#open--;
    this.#lastAnswerAt = now;
    connection.place = -1;
    this.#all.record(due, now);
    if (accepted) this.#accepted.record(due, now);
    // A 503 may leave it open whether units are held; 4xx says that none are.
    this.#heard[place] = accepted ? HEARD.ok : status < 500 ? HEARD.fail : HEARD.unknown;
    if (closes) connection.socket.destroy();
    else this.#idle.push(connection);
    this.#sendDue();
  }

  #addressOf(turn: number): string | undefined {
    const { addresses = [] } = this.#plan;
    return addresses[turn % Math.max(1, addresses.length)];
  }

  #connect(localAddress: string | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const from = localAddress === undefined ? {} : { localAddress };
      const socket = connect({ port: this.#plan.port, host: '127.0.0.1', noDelay: true, ...from });
      const connection: Connection = { socket, answers: new AnswerReader(), place: -1 };
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => reject(new Error('a connection was not opened in time')));
      socket.once('connect', () => {
        socket.setTimeout(0);
        this.#connections.add(connection);
        this.#idle.push(connection);
        resolve();
      });
      socket.on('data', (chunk: Buffer) => {
        for (const { status, closes } of connection.answers.read(chunk)) {
          if (connection.place === -1) return this.#leave(connection);
          this.#take(connection, status, closes);
        }
      });
      socket.on('error', reject); // a later one is told by `close`
      socket.once('close', () => this.#lost(connection, localAddress));
    });
  }

  /** The api says 408 to a connection that has stood idle for too long: an answer to nobody. */
  #leave(connection: Connection): void {
    this.#forget(connection);
    connection.socket.destroy();
  }

  #forget(connection: Connection): void {
    const idle = this.#idle.indexOf(connection);
    if (idle !== -1) this.#idle.splice(idle, 1);
  }

  /** A connection is gone: its request has no answer, and another connection takes its place. */
  #lost(connection: Connection, localAddress: string | undefined): void {
    this.#forget(connection);
    this.#connections.delete(connection);
    if (connection.place !== -1) this.#open--;
    if (!this.#ended && this.#sent < this.#total) this.#connect(localAddress).catch(() => undefined); // the others go on
  }
}

serveChild<OpenLoopPlan, OpenLoopResult>((plan) => new OpenLoopClient(plan).run());
