import { connect, type Socket } from 'node:net';
import { readRecords, purchaseKeyAt, type BuyerFile } from '../../../bench/load/buyers.js';
import { requestFrame } from '../../../bench/load/load.js';
import { AnswerReader } from '../../../bench/load/request-sender.js';

// The buyers of a long run, in a separate process. They use raw sockets, as in the bench, because an HTTP client costs
// more CPU than the api. Each connection has one request under way.

/** The last outcome of a purchase that its buyer saw. `none` stands for a buyer who sent nothing. */
export const OUTCOME = { none: 0, ok: 1, fail: 2, unknown: 3 } as const;

/** An open sale, and the number of its buyers, from the first buyer of the file on. */
export interface LoadSale {
  readonly saleId: string;
  readonly buyers: number;
  readonly closesAtMs: number;
}

/** An order that was paid or cancelled, according to the answer to its buyer. */
export interface ConfirmedMove {
  readonly orderId: string;
  readonly move: 'pay' | 'cancel';
}

export interface SoldSale {
  readonly kind: 'sold';
  readonly saleId: string;
  /** Holds one OUTCOME per buyer. */
  readonly outcomes: Uint8Array;
  readonly moves: readonly ConfirmedMove[];
}

export interface LoadStats {
  readonly kind: 'stats';
  readonly requests: number;
  readonly accepted: number;
  readonly refused: number;
  /** Requests whose outcome is open, with or without an answer. */
  readonly unanswered: number;
  /** Accepted purchases that were sent again with the same key. */
  readonly repeated: number;
  readonly paid: number;
  readonly cancelled: number;
  /** When the latest accepted purchase, and the latest purchase that became an order, were sent, in Unix ms. */
  readonly lastAcceptedSentMs: number;
  readonly lastOrderedSentMs: number;
  readonly wrong: readonly string[];
  readonly cpuSeconds: number;
}

export type ToLoad =
  | { readonly kind: 'start'; readonly file: BuyerFile; readonly connections: number; readonly salesAtOnce: number }
  | { readonly kind: 'apis'; readonly ports: readonly number[] }
  | { readonly kind: 'pace'; readonly open: number }
  | { readonly kind: 'sell'; readonly sale: LoadSale }
  | { readonly kind: 'end' };
export type FromLoad = { readonly kind: 'ready' } | SoldSale | LoadStats;

/** Wait before a purchase is sent again. The whole seconds of Retry-After are too long for a short sale. */
const AGAIN_MS = 300;
/** Time after the end of a sale in which unanswered purchases are still retried. */
const GIVE_UP_AFTER_MS = 5_000;
/** Every 64th accepted purchase is followed: its buyer waits for the order, repeats the key, then pays or cancels. */
const FOLLOW_EVERY = 64;
const FOLLOW_AFTER_MS = 500;
const FOLLOWS_AT_ONCE = 24;
const FOLLOW_TRIES = 40;
/** Every 4th followed buyer cancels. The others pay. */
const CANCEL_EVERY = 4;
const ANSWER_MAX_MS = 15_000;
const TICK_MS = 10;
const STATS_EVERY_MS = 1_000;
const WRONG_MAX = 20;

/** An api closes an unused connection, and may leave a request that arrives at that moment unread. */
const TOO_SLOW = 408;

/** After these refusals no later attempt can win. */
const FINAL = ['sold_out', 'not_enough_left', 'limit_reached', 'closed'];
/** Temporary refusals. The buyer tries again. */
const COME_AGAIN = ['not_open', 'overloaded', 'loading', 'paused', 'unavailable', 'rate_limited'];

interface Request {
  readonly text: string;
  /** @param status null if no answer came */
  readonly onAnswer: (status: number | null, body: string) => void;
}

/** A sale under way. */
class SaleRun {
  readonly outcomes: Uint8Array;
  readonly moves: ConfirmedMove[] = [];
  readonly sale: LoadSale;
  /** The first buyer who has not bought yet. */
  next = 0;
  /** Requests that are under way or wait to be sent again. */
  open = 0;

  constructor(sale: LoadSale) {
    this.sale = sale;
    this.outcomes = new Uint8Array(sale.buyers);
  }

  get hasFresh(): boolean {
    return this.next < this.sale.buyers;
  }

  get isOver(): boolean {
    return !this.hasFresh && this.open === 0;
  }
}

interface Later {
  readonly dueMs: number;
  readonly run: SaleRun;
  readonly request: (port: number) => Request;
}

class Load {
  readonly #records: Buffer;
  readonly #file: BuyerFile;
  readonly #connections: number;
  readonly #salesAtOnce: number;
  /** Sales with buyers who have not bought yet, the oldest sale first. */
  readonly #waiting: SaleRun[] = [];
  readonly #again: Later[] = [];
  readonly #follows: Later[] = [];
  #following = 0;
  /** Requests under way, and their limit. */
  #underWay = 0;
  #openMax: number;
  #turn = 0;
  readonly #pools = new Map<number, Pool>();
  #ports: readonly number[] = [];
  #made = 0;
  readonly #homes = new Map<SaleRun, number>();
  readonly #wrong: string[] = [];
  readonly #counts = { requests: 0, accepted: 0, refused: 0, unanswered: 0, repeated: 0, paid: 0, cancelled: 0 };
  #lastAcceptedSentMs = 0;
  #lastOrderedSentMs = 0;
  readonly #timers: NodeJS.Timeout[];

  constructor(file: BuyerFile, connections: number, salesAtOnce: number) {
    this.#file = file;
    this.#connections = connections;
    this.#salesAtOnce = salesAtOnce;
    this.#openMax = connections;
    this.#records = readRecords({ ...file, first: 0 });
    this.#timers = [setInterval(() => this.#pump(), TICK_MS), setInterval(() => this.#report(), STATS_EVERY_MS)];
  }

  /** Keeps a sale with one api while that api runs, because batches are larger then. */
  useApis(ports: readonly number[]): void {
    this.#ports = ports;
    for (const [port, pool] of this.#pools) {
      if (ports.includes(port)) continue;
      pool.end();
      this.#pools.delete(port);
    }
    const each = Math.ceil(Math.min(this.#connections, this.#openMax) / Math.max(1, ports.length));
    for (const port of ports) {
      const pool = this.#pools.get(port) ?? new Pool(port, () => this.#pick(port));
      this.#pools.set(port, pool);
      pool.resize(each);
    }
  }

  /** Opens no more connections than requests, because the api closes idle connections. */
  pace(open: number): void {
    this.#openMax = open;
    this.useApis(this.#ports);
  }

  sell(sale: LoadSale): void {
    const run = new SaleRun(sale);
    this.#homes.set(run, this.#made++);
    this.#waiting.push(run);
    this.#pump();
  }

  end(): void {
    for (const timer of this.#timers) clearInterval(timer);
    for (const pool of this.#pools.values()) pool.end();
  }

  #pump(): void {
    for (const pool of this.#pools.values()) pool.pump();
  }

  #pick(port: number): Request | null {
    if (this.#underWay >= this.#openMax) return null;
    const request = this.#next(port);
    if (request === null) return null;
    this.#underWay++;
    const onAnswer: Request['onAnswer'] = (status, body) => {
      this.#underWay--;
      request.onAnswer(status, body);
    };
    return { text: request.text, onAnswer };
  }

  #next(port: number): Request | null {
    const nowMs = Date.now();
    const again = this.#again[0];
    if (again !== undefined && again.dueMs <= nowMs) {
      this.#again.shift();
      return again.request(port);
    }
    const follow = this.#follows[0];
    if (follow !== undefined && follow.dueMs <= nowMs && this.#following < FOLLOWS_AT_ONCE) {
      this.#follows.shift();
      this.#following++;
      return follow.request(port);
    }
    return this.#fresh(port);
  }

  /** Returns a request for the next buyer in a sale of this api. */
  #fresh(port: number): Request | null {
    const place = this.#ports.indexOf(port);
    const own: SaleRun[] = [];
    for (const run of this.#waiting) {
      if ((this.#homes.get(run) ?? 0) % this.#ports.length !== place) continue;
      own.push(run);
      if (own.length === this.#salesAtOnce) break;
    }
    const run = own[this.#turn++ % Math.max(1, own.length)] ?? this.#waiting[0];
    if (run === undefined) return null;
    const buyer = run.next++;
    if (!run.hasFresh) this.#waiting.splice(this.#waiting.indexOf(run), 1);
    run.open++;
    return this.#purchase(run, buyer, port);
  }

  #purchase(run: SaleRun, buyer: number, port: number): Request {
    const { saleId, closesAtMs } = run.sale;
    const sentMs = Date.now();
    return {
      text: this.#purchaseText(run, buyer, port),
      onAnswer: (status, body) => {
        this.#counts.requests++;
        run.open--;
        const unknown = run.outcomes[buyer] === OUTCOME.unknown;
        if (status !== null && status < 300) {
          run.outcomes[buyer] = OUTCOME.ok;
          this.#counts.accepted++;
          this.#lastAcceptedSentMs = Math.max(this.#lastAcceptedSentMs, sentMs);
          if (buyer % FOLLOW_EVERY === 0) this.#follow(run, buyer, sentMs, 0);
        } else {
          const code = codeOf(body);
          const isFinal = status !== null && FINAL.includes(code);
          if (isFinal) this.#counts.refused++;
          else if (status !== null && status < 500 && status !== TOO_SLOW && !COME_AGAIN.includes(code)) {
            this.#isWrong(`a purchase of sale ${saleId} got ${status} ${body.slice(0, 200)}`);
          }
          if (!isFinal && !COME_AGAIN.includes(code)) {
            this.#counts.unanswered++;
            run.outcomes[buyer] = OUTCOME.unknown;
          } else if (!unknown) run.outcomes[buyer] = OUTCOME.fail;
          if (!isFinal && Date.now() < closesAtMs + GIVE_UP_AFTER_MS) {
            run.open++;
            this.#again.push({ dueMs: Date.now() + AGAIN_MS, run, request: (at) => this.#purchase(run, buyer, at) });
          }
        }
        this.#endIfOver(run);
      },
    };
  }

  #purchaseText(run: SaleRun, buyer: number, port: number): string {
    const frame = requestFrame({ port, path: `/v1/sales/${run.sale.saleId}/purchases` });
    return `${frame.head}${this.#recordOf(buyer)}${frame.tail}`;
  }

  #follow(run: SaleRun, buyer: number, sentMs: number, tries: number): void {
    run.open++;
    const request = (port: number): Request => {
      const path = `/v1/sales/${run.sale.saleId}/purchases/${this.#keyOf(buyer)}?wait=2`;
      return this.#call('GET', path, buyer, port, (status, body) => {
        this.#following--;
        run.open--;
        const answer = status === 200 ? jsonOf(body) : {};
        if (answer.status === 'ordered') {
          this.#lastOrderedSentMs = Math.max(this.#lastOrderedSentMs, sentMs);
          this.#repeat(run, buyer, String(answer.orderId));
        } else if (answer.status !== 'failed' && tries < FOLLOW_TRIES) this.#follow(run, buyer, sentMs, tries + 1);
        this.#endIfOver(run);
      });
    };
    this.#follows.push({ dueMs: Date.now() + FOLLOW_AFTER_MS, run, request });
  }

  /** Sends the same key again. The answer must be the same purchase, or an error during a fault. */
  #repeat(run: SaleRun, buyer: number, orderId: string): void {
    run.open++;
    const request = (port: number): Request => ({
      text: this.#purchaseText(run, buyer, port),
      onAnswer: (status, body) => {
        this.#counts.requests++;
        this.#counts.repeated++;
        this.#following--;
        run.open--;
        const isSame = status !== null && status < 300 && String(jsonOf(body).orderId ?? orderId) === orderId;
        const isBroken = status === null || status === TOO_SLOW || status >= 500;
        if (!isSame && !isBroken) {
          this.#isWrong(
            `an accepted purchase of sale ${run.sale.saleId}, sent again, got ${status} ${body.slice(0, 200)}`,
          );
        }
        this.#move(run, buyer, orderId, 0);
        this.#endIfOver(run);
      },
    });
    this.#follows.push({ dueMs: Date.now(), run, request });
  }

  #move(run: SaleRun, buyer: number, orderId: string, tries: number): void {
    run.open++;
    const move = (buyer / FOLLOW_EVERY) % CANCEL_EVERY === 0 ? 'cancel' : 'pay';
    const request = (port: number): Request =>
      this.#call('POST', `/v1/orders/${orderId}/${move}`, buyer, port, (status) => {
        this.#following--;
        run.open--;
        if (status !== null && status < 300) {
          this.#counts[move === 'pay' ? 'paid' : 'cancelled']++;
          run.moves.push({ orderId, move });
        } else if ((status === null || status >= 500) && tries < FOLLOW_TRIES) {
          this.#move(run, buyer, orderId, tries + 1);
        }
        this.#endIfOver(run);
      });
    this.#follows.push({ dueMs: Date.now() + (tries === 0 ? 0 : AGAIN_MS), run, request });
  }

  #call(method: string, path: string, buyer: number, port: number, onAnswer: Request['onAnswer']): Request {
    const authorization = this.#recordOf(buyer).split('\r\n')[0];
    const lines = [`${method} ${path} HTTP/1.1`, `Host: 127.0.0.1:${port}`, authorization];
    const body = method === 'POST' ? ['Content-Length: 0'] : [];
    const text = `${[...lines, ...body].join('\r\n')}\r\n\r\n`;
    return {
      text,
      onAnswer: (status, answer) => {
        this.#counts.requests++;
        onAnswer(status, answer);
      },
    };
  }

  #endIfOver(run: SaleRun): void {
    if (!run.isOver || !this.#homes.delete(run)) return;
    send({ kind: 'sold', saleId: run.sale.saleId, outcomes: run.outcomes, moves: run.moves });
  }

  #recordOf(buyer: number): string {
    const { recordBytes } = this.#file;
    return this.#records.toString('latin1', buyer * recordBytes, (buyer + 1) * recordBytes);
  }

  #keyOf(buyer: number): string {
    const key = purchaseKeyAt(this.#records, { ...this.#file, first: 0 }, buyer);
    return key.slice(key.indexOf('/') + 1);
  }

  #isWrong(sentence: string): void {
    if (this.#wrong.length < WRONG_MAX) this.#wrong.push(sentence);
  }

  #report(): void {
    const { user, system } = process.cpuUsage();
    send({
      kind: 'stats',
      ...this.#counts,
      lastAcceptedSentMs: this.#lastAcceptedSentMs,
      lastOrderedSentMs: this.#lastOrderedSentMs,
      wrong: this.#wrong,
      cpuSeconds: (user + system) / 1e6,
    });
  }
}

const codeOf = (body: string): string => /"code":"(\w+)"/.exec(body)?.[1] ?? '';

function jsonOf(body: string): Record<string, unknown> {
  try {
    return JSON.parse(body) as Record<string, unknown>;
  } catch {
    return {};
  }
}

class Pool {
  readonly #port: number;
  readonly #pick: () => Request | null;
  readonly #clients: Client[] = [];

  constructor(port: number, pick: () => Request | null) {
    this.#port = port;
    this.#pick = pick;
  }

  resize(connections: number): void {
    while (this.#clients.length < connections) this.#clients.push(new Client(this.#port, this.#pick));
    for (const client of this.#clients.splice(connections)) client.end();
  }

  pump(): void {
    for (const client of this.#clients) client.pump();
  }

  end(): void {
    for (const client of this.#clients.splice(0)) client.end();
  }
}

/** A connection that opens again when it breaks. */
class Client {
  readonly #port: number;
  readonly #pick: () => Request | null;
  #socket: Socket | null = null;
  #answers = new AnswerReader();
  #ready = false;
  #ended = false;
  #request: Request | null = null;
  #sentMs = 0;
  #connectAtMs = 0;

  constructor(port: number, pick: () => Request | null) {
    this.#port = port;
    this.#pick = pick;
  }

  pump(): void {
    if (this.#socket === null) {
      if (!this.#ended && Date.now() >= this.#connectAtMs) this.#connect();
      return;
    }
    if (this.#request !== null) {
      if (Date.now() - this.#sentMs > ANSWER_MAX_MS) this.#socket.destroy();
      return;
    }
    if (!this.#ready || this.#ended) return;
    const request = this.#pick();
    if (request === null) return;
    this.#request = request;
    this.#sentMs = Date.now();
    this.#socket.write(request.text, 'latin1');
  }

  /** Closes the connection after its answer, or at once if it is idle. */
  end(): void {
    this.#ended = true;
    if (this.#request === null) this.#socket?.destroy();
  }

  #connect(): void {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    this.#answers = new AnswerReader();
    socket.once('connect', () => {
      this.#ready = true;
      this.pump();
    });
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => undefined); // `close` follows
    socket.once('close', () => {
      this.#socket = null;
      this.#ready = false;
      this.#connectAtMs = Date.now() + AGAIN_MS;
      this.#answer(null, '');
    });
  }

  #read(chunk: Buffer): void {
    for (const { status, closes, body } of this.#answers.read(chunk)) {
      if (closes) this.#ready = false;
      this.#answer(status, body.toString('utf8'));
      if (closes || this.#ended) this.#socket?.destroy();
    }
    this.pump();
  }

  #answer(status: number | null, body: string): void {
    const request = this.#request;
    this.#request = null;
    request?.onAnswer(status, body);
  }
}

const send = (message: FromLoad): void => void process.send?.(message);

let load: Load | null = null;
process.on('message', (message: ToLoad) => {
  switch (message.kind) {
    case 'start':
      load = new Load(message.file, message.connections, message.salesAtOnce);
      send({ kind: 'ready' });
      break;
    case 'apis':
      load?.useApis(message.ports);
      break;
    case 'pace':
      load?.pace(message.open);
      break;
    case 'sell':
      load?.sell(message.sale);
      break;
    case 'end':
      load?.end();
      process.disconnect();
  }
});
process.on('disconnect', () => process.exit());
// Ctrl-C reaches the whole process group, and the command ends its children itself
process.on('SIGINT', () => undefined);
