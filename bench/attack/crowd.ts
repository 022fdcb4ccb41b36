import { connect, type Socket } from 'node:net';
import { AnswerReader } from '../load/http-answers.js';
import { dueCount } from '../load/open-loop.js';
import type { AttackTally } from './attack.js';

export interface CrowdOptions {
  readonly port: number;
  readonly connections: number;
  readonly addressOf: (place: number) => string;
  /** Requests per second. */
  readonly rate: number;
  /** Requests at most. */
  readonly total: number;
  /** The bytes of the n-th request. */
  readonly request: (place: number) => Buffer;
  /** Told of each answer. */
  readonly heard?: (place: number, status: number) => void;
}

interface Attacker {
  readonly socket: Socket;
  readonly answers: AnswerReader;
  /** Of the request that waits for its answer, or -1. */
  place: number;
}

const CONNECT_TIMEOUT_MS = 10_000;

/** Attackers of one kind: requests that are due at a fixed rate, on keep-alive connections that come again when closed. */
export class Crowd {
  readonly #options: CrowdOptions;
  readonly #idle: Attacker[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #byStatus = new Map<number, number>();
  #sent = 0;
  #answered = 0;
  #open = 0;
  #ended = false;

  constructor(options: CrowdOptions) {
    this.#options = options;
  }

  /** Opens the connections. @throws when one of them is not taken */
  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.connections }, (_, place) => this.#connect(place)));
  }

  /** Sends what is due, as far as connections are free; the rest waits for the next call. */
  sendDue(elapsedMs: number): void {
    const { rate, total } = this.#options;
    const due = Math.min(total, dueCount(elapsedMs, rate));
    while (this.#sent < due) {
      const attacker = this.#idle.shift(); // they take turns, so that each address has its part
      if (attacker === undefined) return;
      attacker.place = this.#sent++;
      this.#open++;
      attacker.socket.write(this.#options.request(attacker.place));
    }
  }

  get isAnswered(): boolean {
    return this.#open === 0;
  }

  /** Leaves, and says what it heard. */
  end(): AttackTally {
    this.#ended = true;
    for (const socket of this.#sockets) socket.destroy();
    return { sent: this.#sent, answered: this.#answered, byStatus: Object.fromEntries(this.#byStatus) };
  }

  #take(attacker: Attacker, status: number, closes: boolean): void {
    this.#answered++;
    this.#open--;
    this.#byStatus.set(status, (this.#byStatus.get(status) ?? 0) + 1);
    this.#options.heard?.(attacker.place, status);
    attacker.place = -1;
    if (closes) attacker.socket.destroy();
    else this.#idle.push(attacker);
  }

  #connect(turn: number): Promise<void> {
    const { port, addressOf } = this.#options;
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', localAddress: addressOf(turn), noDelay: true });
      const attacker: Attacker = { socket, answers: new AnswerReader(), place: -1 };
      this.#sockets.add(socket);
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => reject(new Error('an attacker was not let in in time')));
      socket.once('connect', () => {
        socket.setTimeout(0);
        this.#idle.push(attacker);
        resolve();
      });
      socket.on('data', (chunk: Buffer) => {
        for (const { status, closes } of attacker.answers.read(chunk)) this.#take(attacker, status, closes);
      });
      socket.on('error', reject); // a later one is told by `close`
      socket.once('close', () => {
        this.#sockets.delete(socket);
        const idle = this.#idle.indexOf(attacker);
        if (idle !== -1) this.#idle.splice(idle, 1);
        if (attacker.place !== -1) this.#open--;
        if (!this.#ended) this.#connect(turn).catch(() => undefined); // the others go on
      });
    });
  }
}
