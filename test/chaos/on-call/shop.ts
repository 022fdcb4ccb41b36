import type { StackControls } from '../harness/stack-controls.js';
import { pickFreePort } from '../../../deploy/local/stack/ports.js';
import type { Target } from '../../helpers/live-prometheus.js';
import { fetchNginx, Nginx } from '../../helpers/nginx.js';
import { checkSale, waitUntilAtRest } from '../../invariants/check-sale.js';
import { Buyers, isAccepted } from '../harness/buyers.js';
import { Programs, type Program, type ProgramName } from '../harness/programs.js';
import { openSale, reconcileSale } from '../harness/sales.js';
import { GRANTED_MS, grantedClock, until } from '../harness/wait.js';

/** Two of each program, as on-call engineers run them. A restarted program has the same ports. */
export const PLACES = ['api-1', 'api-2', 'worker-1', 'worker-2', 'keeper-1', 'keeper-2'] as const;
export type Place = (typeof PLACES)[number];
type Ports = ReadonlyMap<Place, readonly [port: number, operatorsPort: number]>;

const STOCK = 1_000_000;
const BUYERS_PER_SECOND = 20;
const WARM_PURCHASES = 200;
/** Short, so that half of the orders expire during the run. */
const PAYMENT_WINDOW_MS = 60_000;
/** Undoes shortened times of the harness that an operator would notice. */
const ENV = {
  PAYMENT_PROVIDER: 'simulator',
  ORDER_PAYMENT_WINDOW_MS: String(PAYMENT_WINDOW_MS),
  HTTP_TRUSTED_PROXIES: '127.0.0.1/32',
  WORKER_INVISIBLE_MS: '30000',
  ROCKETMQ_RECEIVE_WAIT_MS: '10000',
  METRICS_CACHE_MS: '1000',
};

/** The answers and waits of buyers since the last `take`. */
export interface Tally {
  readonly tries: number;
  /** Purchases with a 5xx or without an answer. */
  readonly refused: number;
  readonly slowestMs: number;
}

const NOTHING: Tally = { tries: 0, refused: 0, slowestMs: 0 };

interface SaleIds {
  readonly busy: string;
  readonly idle: string;
}

/** A shop under steady load: nginx as shipped in front of two apis, two workers, two keepers. Half of its buyers pay. */
export class Shop {
  readonly stack: StackControls;
  readonly nginx: Nginx;
  /** The figures of the busy sale, from `closeBooks`. */
  books = '';
  readonly #programs: Programs;
  readonly #ports: Ports;
  readonly #running = new Map<Place, Program>();
  readonly #buyers: Buyers;
  /** The sale without load, in which only `buyOne` buys. */
  readonly #idle: Buyers;
  #tally = NOTHING;
  #made = 0;
  #load: NodeJS.Timeout | null = null;
  readonly #selling = new Set<Promise<void>>();

  private constructor(stack: StackControls, programs: Programs, ports: Ports, nginx: Nginx, saleIds: SaleIds) {
    this.stack = stack;
    this.nginx = nginx;
    this.#programs = programs;
    this.#ports = ports;
    this.#buyers = new Buyers(saleIds.busy, stack.env.JWT_SECRET, () => [nginx.url]);
    this.#idle = new Buyers(saleIds.idle, stack.env.JWT_SECRET, () => [nginx.url]);
  }

  /** @throws Error if there is no nginx on this machine */
  static async open(stack: StackControls): Promise<Shop> {
    const found = await fetchNginx();
    if ('missing' in found) throw new Error(found.missing);
    const ports = new Map(PLACES.map((place) => [place, [pickFreePort(), pickFreePort()] as const]));
    const upstreams = PLACES.filter((place) => place.startsWith('api')).map((place) => {
      const [port = 0, operatorsPort = 0] = ports.get(place) ?? [];
      return { port, operatorsPort };
    });
    const programs = new Programs({ ...process.env, ...stack.env }, stack.servers.dir);
    const open = () => openSale(stack, { stock: STOCK, closesAtMs: Date.now() + 6 * 3_600_000 });
    const [busy, idle] = await Promise.all([open(), open()]);
    const running = await Promise.all(
      PLACES.map(async (place) => [place, await startAt(programs, ports, place)] as const),
    );
    const nginx = await Nginx.start(found, { upstreams, unlimitedNetworks: '127.0.0.1/32 1;\n' });
    const opened = new Shop(stack, programs, ports, nginx, { busy: busy.saleId, idle: idle.saleId });
    for (const [place, program] of running) opened.#running.set(place, program);
    return opened;
  }

  /** The targets of Prometheus, whether they run or not. */
  get targets(): Target[] {
    const programs = [...this.#ports].map(([place, [port, operatorsPort]]): Target => {
      const program = nameOf(place);
      return { program, address: `127.0.0.1:${program === 'api' ? operatorsPort : port}` };
    });
    return [...programs, { program: 'proxy', address: new URL(this.nginx.url).host }];
  }

  portsOf(place: Place): readonly [port: number, operatorsPort: number] {
    return this.#ports.get(place) as readonly [number, number];
  }

  program(place: Place): Program {
    const program = this.#running.get(place);
    if (program === undefined) throw new Error(`${place} was never started`);
    return program;
  }

  async kill(...places: readonly Place[]): Promise<void> {
    await Promise.all(places.map((place) => this.program(place).crash()));
  }

  async stop(...places: readonly Place[]): Promise<void> {
    await Promise.all(places.map((place) => this.program(place).stop()));
  }

  /** Starts the programs that have ended. */
  async start(...places: readonly Place[]): Promise<void> {
    await Promise.all(
      places.map(async (place) => this.#running.set(place, await startAt(this.#programs, this.#ports, place))),
    );
  }

  /**
   * Makes buyers arrive at a steady rate, even without answers. @returns once both apis have sold for a while, because
   * an api reads the sale from MySQL at its first purchase
   */
  async sell(): Promise<void> {
    const sellOne = (): void => {
      const selling = this.#sellOne(this.#made++).finally(() => this.#selling.delete(selling));
      this.#selling.add(selling);
    };
    this.#load = setInterval(sellOne, 1000 / BUYERS_PER_SECOND);
    await until('the idle sale sells', () => this.buyOne('idle'));
    await until('the shop sells', () => this.#buyers.opLog.count('ok') >= WARM_PURCHASES, { everyMs: 1000 });
  }

  /** Waits until Redis and MySQL agree on the sale. @throws with the last findings if they never do */
  async untilReconciled(): Promise<void> {
    let last: unknown;
    const matches = async (): Promise<boolean> => {
      last = await reconcileSale(this.stack, this.program('api-1'), this.#buyers.saleId);
      return (last as { outcome: unknown }).outcome === 'match';
    };
    await until('reconcile says match', matches, { everyMs: 5000 }).catch((error: unknown) => {
      throw new Error(`reconcile says ${JSON.stringify(last)}`, { cause: error });
    });
  }

  /**
   * Ends the load. Buyers without an answer ask again, unpaid orders expire, and then every invariant must hold.
   * @returns what is wrong
   */
  async closeBooks(): Promise<string[]> {
    if (this.#load !== null) clearInterval(this.#load);
    await Promise.all(this.#selling);
    const idle = await this.#closeBooksOf(this.#idle);
    return [...idle, ...(await this.#closeBooksOf(this.#buyers))];
  }

  async #closeBooksOf(buyers: Buyers): Promise<string[]> {
    const { stack } = this;
    const { saleId, opLog } = buyers;
    await buyers.retryUnknown();
    const ports = { ...stack.audit, clock: grantedClock() };
    if (!(await waitUntilAtRest(saleId, ports, GRANTED_MS))) return ['the sale is not at rest'];
    const unpaid = "SELECT COUNT(*) AS open FROM orders WHERE sale_id = ? AND state = 'pending_payment'";
    await until('unpaid orders have expired', async () => {
      const [row] = await stack.mysql.query<{ open: number }>(unpaid, [saleId]);
      return Number(row?.open) === 0;
    });
    if (!(await waitUntilAtRest(saleId, ports, GRANTED_MS))) return ['the sale is not at rest'];
    const { findings, figures } = await checkSale(saleId, stack.audit, opLog.entries, { history: opLog, mayFail: [] });
    const unknown = opLog.count('unknown');
    this.books = `${opLog.count('ok')} purchases accepted, ${figures.rows} orders, ${figures.lost} lost, ${figures.duplicates} duplicates, units differ by ${figures.difference}`;
    return [
      ...findings.map(({ invariant, detail }) => `${invariant} ${detail}`),
      ...(unknown > 0 ? [`${unknown} purchases never got an answer`] : []),
    ];
  }

  /** Returns the tally since the last call. */
  take(): Tally {
    const taken = this.#tally;
    this.#tally = NOTHING;
    return taken;
  }

  /** Asks for one unit for a new buyer. @returns whether it was accepted */
  async buyOne(sale: keyof SaleIds): Promise<boolean> {
    const buyers = sale === 'busy' ? this.#buyers : this.#idle;
    return isAccepted(await buyers.buy(`single-${this.#made++}`, { timeoutMs: 2000 }));
  }

  async close(): Promise<void> {
    if (this.#load !== null) clearInterval(this.#load);
    await Promise.all([this.#buyers.close(), this.#idle.close()]);
    await this.nginx.stop();
    await this.#programs.close();
  }

  async #sellOne(nth: number): Promise<void> {
    const [userId, startedMs] = [`buyer-${nth}`, performance.now()];
    const answer = await this.#buyers.buy(userId);
    const { tries, refused, slowestMs } = this.#tally;
    this.#tally = {
      tries: tries + 1,
      refused: refused + (answer === null || answer.status >= 500 ? 1 : 0),
      slowestMs: Math.max(slowestMs, Math.round(performance.now() - startedMs)),
    };
    if (!isAccepted(answer) || nth % 2 === 1) return;
    const { json } = await this.#buyers.status(userId, 'k1', 10).catch(() => ({ json: {} as { orderId?: string } }));
    if (typeof json.orderId === 'string') await this.#buyers.move('pay', userId, json.orderId);
  }
}

const nameOf = (place: Place): ProgramName => place.slice(0, -2) as ProgramName;

function startAt(programs: Programs, ports: Ports, place: Place): Promise<Program> {
  const [port, operatorsPort] = (ports.get(place) ?? []).map(String) as [string, string];
  return programs.start(nameOf(place), {
    env: { ...ENV, PORT: port, OPERATORS_PORT: operatorsPort, METRICS_PORT: port },
  });
}
