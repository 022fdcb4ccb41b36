import { isLive, wasPaid, type FailureReason } from '../../src/core/order.js';
import { purchaseKey, splitPurchaseKey } from '../../src/core/purchase.js';
import type { Sale } from '../../src/core/sale.js';
import { openTransfers, unitsInTransit, type BucketTransfers } from '../../src/core/bucket.js';
import type { AuditedOrder } from '../../src/core/ports/reconcile-repository.js';
import type { AuditedRow, OrderAudit } from './order-audit.js';
import type { BucketAudit, BucketSnapshot } from './redis-snapshot.js';
import type { Clock } from '../../src/core/ports/clock.js';
import { judgeFailures, judgeHistory, type ClientHistory } from './check-history.js';
import { compareRequest } from '../../src/operate/reconcile/judge-requests.js';

export const NO_TRANSFERS: BucketTransfers = Object.freeze({ outgoing: [], incoming: new Map<number, number>() });

export interface CheckPorts {
  readonly store: BucketAudit;
  readonly repository: OrderAudit;
}

/** The outcome of a purchase for its client: `ok` if any attempt got 2xx, `fail` if every attempt was refused. */
export type ClientOutcome = 'ok' | 'fail' | 'unknown';
/** `userId/requestId` → outcome for the client. */
export type OpLog = ReadonlyMap<string, ClientOutcome>;

/** Facts besides the answers to purchases. An absent part is not checked. */
export interface CheckMore {
  readonly history?: ClientHistory;
  /** Reasons for which an accepted purchase may fail. */
  readonly mayFail?: readonly FailureReason[];
}

/** A broken promise. docs/architecture.md lists the invariants. */
export interface Finding {
  readonly invariant: 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8';
  readonly detail: string;
}

/** Counts are units unless they say rows. */
export interface SaleFigures {
  readonly stock: number;
  readonly sold: number;
  readonly unitsLeft: number;
  readonly rows: number;
  readonly liveRows: number;
  readonly failedRows: number;
  /** Live units beyond the stock. */
  readonly oversold: number;
  /** Rows beyond the first of a purchase. */
  readonly duplicates: number;
  /** Purchases that were answered 2xx, or hold units in Redis, and have no row. */
  readonly lost: number;
  /** Units in transit between two buckets. 0 at rest. */
  readonly inTransit: number;
  /** Units by which Redis and MySQL differ: stock − sold − units left − units in transit. 0 at rest. */
  readonly difference: number;
  readonly pendingBatches: number;
}

export interface SaleCheck {
  readonly figures: SaleFigures;
  readonly findings: readonly Finding[];
}

/** More violations would only repeat the first. */
const FINDINGS_MAX = 50;
/** A sale that changes during this number of checks is not at rest. */
const CHECKS_MAX = 20;

/**
 * Compares Redis, MySQL and the answers to clients, for one sale that is at rest (see `waitUntilAtRest`).
 * @param opLog if absent, only Redis and MySQL are compared
 * @param more other answers to clients, and failures that a fault allows
 * @throws OperationalError; Error if there is no such sale
 */
export async function checkSale(
  saleId: string,
  ports: CheckPorts,
  opLog?: OpLog,
  more: CheckMore = {},
): Promise<SaleCheck> {
  const { repository } = ports;
  let sale = await repository.findSale(saleId);
  for (let n = 1; ; n++) {
    if (sale === null) throw new Error(`there is no sale ${saleId} to check`);
    const audit = await auditSale(sale, ports);
    const now = await repository.findSale(saleId);
    // A late batch may be written between reading the sold units and reading the rows.
    if (n === CHECKS_MAX || (now?.sold === sale.sold && now.epoch === sale.epoch)) return audit.conclude(opLog, more);
    sale = now;
  }
}

async function auditSale(sale: Sale, { store, repository }: CheckPorts): Promise<Audit> {
  const { saleId } = sale;
  const buckets = Array.from({ length: sale.buckets }, (_, bucket) => store.snapshot({ saleId, bucket }));
  const audit = new Audit(sale, mergeBuckets(await Promise.all(buckets)));
  for await (const chunk of repository.orders(saleId)) for (const row of chunk) audit.readRow(row);
  return audit;
}

/**
 * Waits until nothing is pending, every release is done and no units are in transit. @returns false after `timeoutMs`
 */
export async function waitUntilAtRest(
  saleId: string,
  ports: CheckPorts & { readonly clock: Pick<Clock, 'nowMs' | 'sleep'> },
  timeoutMs: number,
): Promise<boolean> {
  const { store, repository, clock } = ports;
  const deadlineMs = clock.nowMs() + timeoutMs;
  const sale = await repository.findSale(saleId);
  const buckets = Array.from({ length: sale?.buckets ?? 0 }, (_, bucket) => bucket);
  const nothingInTransit = async (): Promise<boolean> => {
    if (buckets.length < 2) return true;
    const transfers = await Promise.all(buckets.map((bucket) => store.transfers({ saleId, bucket })));
    return openTransfers(transfers).length === 0;
  };
  for (;;) {
    const open = await Promise.all(buckets.map(async (bucket) => store.pendingCount({ saleId, bucket })));
    const isQuiet = open.every((count) => count === 0) && (await repository.undoneReleases(saleId)) === 0;
    if (isQuiet && (await nothingInTransit())) return true;
    if (clock.nowMs() >= deadlineMs) return false;
    await clock.sleep(50);
  }
}

/** All buckets of a sale, merged into one. */
interface MergedSnapshot extends Omit<BucketSnapshot, 'transfers'> {
  readonly inTransit: number;
}

/** Buckets that are not loaded count as empty. */
function mergeBuckets(buckets: readonly (BucketSnapshot | null)[]): MergedSnapshot {
  const loaded = buckets.filter((bucket): bucket is BucketSnapshot => bucket !== null);
  const inTransit = unitsInTransit(buckets.map((bucket) => bucket?.transfers ?? NO_TRANSFERS));
  const [only] = loaded;
  if (loaded.length === 1 && only) return { ...only, inTransit };
  return {
    inTransit,
    unitsLeft: loaded.reduce((sum, bucket) => sum + bucket.unitsLeft, 0),
    requests: new Map(loaded.flatMap((bucket) => [...bucket.requests])),
    buyers: new Map(loaded.flatMap((bucket) => [...bucket.buyers])), // a buyer has one home bucket
    pending: loaded.flatMap((bucket) => bucket.pending),
  };
}

/** Adds up the rows of one sale and compares them with Redis. */
class Audit {
  readonly #sale: Sale;
  readonly #store: MergedSnapshot;
  readonly #rows = new Map<string, AuditedOrder>();
  readonly #liveUnits = new Map<string, number>();
  readonly #findings: Finding[] = [];
  #duplicates = 0;
  #live = { rows: 0, units: 0 };

  constructor(sale: Sale, store: MergedSnapshot) {
    this.#sale = sale;
    this.#store = store;
  }

  readRow(row: AuditedRow): void {
    const key = purchaseKey(row);
    if (wasPaid(row.state) !== (row.paidAtMs !== null)) {
      this.#found('I6', `${key} is ${row.state}, and its time of payment does not fit`);
    }
    if (this.#rows.has(key)) {
      this.#duplicates++;
      this.#found('I2', `${key} has two rows`);
    }
    this.#rows.set(key, row);
    if (!isLive(row.state)) return;
    this.#live.rows++;
    this.#live.units += row.quantity;
    const units = (this.#liveUnits.get(row.userId) ?? 0) + row.quantity;
    this.#liveUnits.set(row.userId, units);
    if (units > this.#sale.limitPerBuyer) this.#found('I2', `buyer ${row.userId} has ${units} live units`);
  }

  conclude(opLog: OpLog | undefined, { history, mayFail }: CheckMore): SaleCheck {
    const { stock, sold, retiredAtMs } = this.#sale;
    const { unitsLeft, inTransit, pending } = this.#store;
    if (sold > stock) this.#found('I1', `sold ${sold} of ${stock}`);
    if (sold !== this.#live.units)
      this.#found('I1', `the count of sold units is ${sold}, but live orders hold ${this.#live.units} units`);
    if (unitsLeft < 0) this.#found('I1', `${unitsLeft} units left in Redis`);
    if (inTransit > 0) this.#found('I4', `${inTransit} units are between two buckets`);
    // Redis forgets a retired sale
    const difference = retiredAtMs === null ? stock - sold - unitsLeft - inTransit : 0;
    if (difference !== 0) this.#found('I4', `units left differ by ${difference} between Redis and MySQL`);
    this.#compareBuyers();
    const lost = this.#compareRequests() + this.#compareOpLog(opLog ?? new Map());
    const rows = this.#rows;
    if (history !== undefined) for (const one of judgeHistory(history, { rows, unitsLeft })) this.#note(one);
    if (mayFail !== undefined) {
      for (const one of judgeFailures(rows, (key) => opLog?.get(key) === 'ok', mayFail)) this.#note(one);
    }
    return {
      figures: {
        stock,
        sold,
        unitsLeft,
        inTransit,
        difference,
        lost,
        rows: this.#rows.size + this.#duplicates,
        liveRows: this.#live.rows,
        failedRows: [...this.#rows.values()].filter((row) => row.state === 'failed').length,
        oversold: Math.max(0, this.#live.units - stock),
        duplicates: this.#duplicates,
        pendingBatches: pending.length,
      },
      findings: this.#findings,
    };
  }

  /** I4: the count per buyer in Redis equals the units that the buyer's requests hold. */
  #compareBuyers(): void {
    const held = new Map<string, number>();
    for (const [key, entry] of this.#store.requests) {
      const user = splitPurchaseKey(key).userId;
      if (entry.state !== 'released') held.set(user, (held.get(user) ?? 0) + entry.quantity);
    }
    for (const user of new Set([...held.keys(), ...this.#store.buyers.keys()])) {
      const [counted, holding] = [this.#store.buyers.get(user) ?? 0, held.get(user) ?? 0];
      if (counted !== holding) this.#found('I4', `buyer ${user} counts ${counted} units, requests hold ${holding}`);
    }
  }

  /** I3 and I5: each request has its row, live if `ordered` and ended if `released`. @returns requests without a row */
  #compareRequests(): number {
    let lost = 0;
    for (const [key, entry] of this.#store.requests) {
      const row = this.#rows.get(key);
      switch (compareRequest(entry, row)) {
        case 'match':
          break;
        case 'leak':
        case 'order_lost':
          lost++;
          this.#found('I3', `${key} is ${entry.state} in Redis and has no row`);
          break;
        case 'not_marked':
        case 'unreleased':
        case 'unheld':
          this.#found('I5', `${key} is ${row?.state} in MySQL and ${entry.state} in Redis`);
      }
    }
    for (const [key, row] of this.#rows) {
      if (this.#store.requests.has(key) || this.#sale.retiredAtMs !== null) continue;
      if (compareRequest(null, row) !== 'match') this.#found('I5', `${key} is unknown in Redis`);
    }
    return lost;
  }

  /** I3: an ok purchase has a row, and a refused purchase has none. @returns ok purchases that both stores lack */
  #compareOpLog(opLog: OpLog): number {
    let lost = 0;
    for (const [key, outcome] of opLog) {
      const row = this.#rows.get(key);
      if (outcome === 'ok' && row === undefined) {
        if (!this.#store.requests.has(key)) lost++;
        this.#found('I3', `${key} was answered 2xx and has no row`);
      }
      if (outcome === 'fail' && row !== undefined && row.state !== 'failed') {
        this.#found('I3', `${key} was refused and has the order ${row.orderId} (${row.state})`);
      }
    }
    return lost;
  }

  #found(invariant: Finding['invariant'], detail: string): void {
    this.#note({ invariant, detail });
  }

  #note(finding: Finding): void {
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push(finding);
  }
}
