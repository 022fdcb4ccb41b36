import { randomBytes } from 'node:crypto';
import { ask, type Reply } from './client.js';
import { ADMITTED_PER_SECOND, nextSale, SALE_KINDS, type SaleName } from './plan.js';

/** A sale that the demo created. */
export interface DemoSale {
  readonly saleId: string;
  readonly name: SaleName | 'refused';
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  readonly limitPerBuyer: number;
}

/** Acts as an operator over HTTP, so that the audit log has every action under its name. */
export class Operators {
  readonly #url: () => string;
  readonly #token: () => string;

  constructor(url: () => string, token: () => string) {
    this.#url = url;
    this.#token = token;
  }

  /** @throws Error with the reason when the API refuses or does not answer */
  async order(method: 'GET' | 'POST' | 'PUT', path: string, body?: object): Promise<Reply['body']> {
    const timeoutMs = 30_000; // a replay waits for its rows
    const reply = await ask(`${this.#url()}/admin/v1${path}`, {
      method,
      token: this.#token(),
      timeoutMs,
      ...(body === undefined ? {} : { body }),
    });
    if (reply === null) throw new Error('the api for operators does not answer');
    if (reply.code !== '') throw new Error(`${reply.code}: ${String(reply.body.detail)}`);
    return reply.body;
  }
}

/** Prefix of the SKUs. Each sale has its own SKU, so that it does not overlap with a sale of an earlier run. */
const SKU = 'demo-';
/** The keeper takes some seconds to load the sale. */
const WARM_BEFORE = '1m';

interface WantedSale {
  readonly title: string;
  readonly priceCents: number;
  readonly stock: number;
  readonly limitPerBuyer: number;
  readonly buckets: number;
}

/** Creates a sale that the keeper opens and closes. @throws Error when the API refuses */
export async function makeSale(
  operators: Operators,
  name: DemoSale['name'],
  { title, priceCents, stock, limitPerBuyer, buckets }: WantedSale,
  { opensAtMs, closesAtMs }: { readonly opensAtMs: number; readonly closesAtMs: number },
): Promise<DemoSale> {
  const made = await operators.order('POST', '/sales', {
    sku: `${SKU}${name}-${randomBytes(4).toString('hex')}`,
    title,
    priceCents,
    stock,
    limitPerBuyer,
    buckets,
    opensAt: new Date(opensAtMs).toISOString(),
    closesAt: new Date(closesAtMs).toISOString(),
    warmBefore: WARM_BEFORE,
  });
  return { saleId: String(made.saleId), name, opensAtMs, closesAtMs, limitPerBuyer };
}

/** Keeps one sale of each kind running. */
export class DemoSales {
  readonly #operators: Operators;
  readonly #rooms: WaitingRooms;
  readonly #going = new Map<SaleName, DemoSale>();
  #made = 0;

  constructor(operators: Operators, rooms: WaitingRooms) {
    this.#operators = operators;
    this.#rooms = rooms;
  }

  /** Returns the sales that are announced or open. */
  get going(): readonly DemoSale[] {
    return [...this.#going.values()];
  }

  /** Returns the number of sales created. */
  get made(): number {
    return this.#made;
  }

  /** Creates the sales that are due. @throws Error if the API refuses a sale; the next call tries it again */
  async keepGoing(nowMs: number): Promise<void> {
    for (const name of Object.keys(SALE_KINDS) as SaleName[]) {
      const kind = SALE_KINDS[name];
      const last = this.#going.get(name);
      if (last !== undefined && nowMs < last.closesAtMs) continue;
      const { announcedAtMs, opensAtMs } = nextSale(kind, nowMs, last?.closesAtMs ?? null);
      if (announcedAtMs > nowMs) continue;
      const sale = await makeSale(this.#operators, name, kind, { opensAtMs, closesAtMs: opensAtMs + kind.openForMs });
      this.#going.set(name, sale);
      this.#made++;
      if (name === 'queued') await this.#rooms.open(sale.saleId);
    }
  }
}

/** Manages the waiting room of the demo in the admission rules. Keeps the rules of other users. */
export class WaitingRooms {
  readonly #operators: Operators;
  /** Our sales in the rules. */
  readonly #ours = new Set<string>();

  constructor(operators: Operators) {
    this.#operators = operators;
  }

  /** Moves the waiting room from the previous sale to this sale. @throws Error when the API refuses */
  async open(saleId: string): Promise<void> {
    this.#ours.add(saleId);
    const times = { admitPerSecond: ADMITTED_PER_SECOND, idleMs: 15_000, pollMs: 2_000 };
    await this.#publish({ mode: 'on', sales: [saleId], ...times });
  }

  /** Removes the waiting room from the rules. @throws Error when the API refuses */
  async close(): Promise<void> {
    if (this.#ours.size > 0) await this.#publish({ mode: 'off' });
  }

  async #publish(queue: object): Promise<void> {
    const stored = await this.#operators.order('GET', '/rules');
    const { version, rules } = stored as {
      version: number;
      rules: { queue: { mode: string; sales: 'all' | string[] } };
    };
    const { mode, sales } = rules.queue;
    const isFree = mode === 'off' || (sales !== 'all' && (await this.#areOurs(sales)));
    if (isFree) await this.#operators.order('PUT', '/rules', { version, rules: { ...rules, queue } });
  }

  /** Includes sales that an earlier run left in the rules. */
  async #areOurs(saleIds: readonly string[]): Promise<boolean> {
    for (const saleId of saleIds) {
      if (this.#ours.has(saleId)) continue;
      const sale = await this.#operators.order('GET', `/sales/${saleId}`).catch(() => null);
      if (sale !== null && !String(sale.sku).startsWith(SKU)) return false;
    }
    return true;
  }
}
