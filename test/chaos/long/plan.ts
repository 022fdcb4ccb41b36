import type { Random } from '../random.js';
import { createRandom } from '../random.js';
import { FAULT_KINDS, KILLS, type FaultKind } from './faults.js';

/** The plan of one sale of a long run. */
export interface PlannedSale {
  readonly index: number;
  readonly sku: string;
  readonly stock: number;
  /** Each buyer asks for one unit. There are more buyers than units. */
  readonly buyers: number;
  readonly buckets: number;
  readonly large: boolean;
  /** True for the small sales that open after all others are over. */
  readonly last: boolean;
}

/** The progress of a run. */
interface Progress {
  readonly soldSales: number;
  readonly elapsedMs: number;
  /** Number of past faults, and the time since the last fault or since the run began. */
  readonly faults: number;
  readonly quietMs: number;
}

/** The sales, the faults and the end of a long run. */
export interface RunPlan {
  readonly name: 'year' | 'soak';
  readonly seed: number;
  readonly sales: readonly PlannedSale[];
  /** Maximum number of concurrent requests of buyers. */
  readonly connections: number;
  /** Minimum number of buyers of imported, unsold sales. The first guess of purchases per second is a tenth. */
  readonly aheadMin: number;
  /** The run is red if fewer purchases are accepted. */
  readonly ordersMin: number;
  /** Number of faults that happen even after every sale is sold. */
  readonly faultsMin: number;
  readonly faultKinds: readonly FaultKind[];
  /** Interval between two faults as a share of the run. */
  readonly faultStep: number;
  /** Returns the share of the run at which the next fault comes, or null if no fault is due. */
  faultDue(progress: Progress): number | null;
  /** No sale is imported after this time. */
  readonly sellsMaxMs: number;
  /** True if the run ends by time. Otherwise a run that exceeds its time is red. */
  readonly endsByTime: boolean;
  /** Minimum number of closed sales that are still in Redis when Redis and all programs are killed. */
  readonly closedAtRestart: number;
}

/** Options of `chaos year`. */
export interface YearFlags {
  readonly sales: number;
  /** Units of all sales, and minimum number of orders. */
  readonly orders: number;
  readonly large: number;
  readonly faults: number;
  readonly seed: number;
  readonly minutes: number;
}

/** Options of `chaos soak`. */
export interface SoakFlags {
  readonly minutes: number;
  readonly faultEveryS: number;
  readonly seed: number;
}

/** Many waiting buyers share batches, so they cost less than a few. */
const YEAR_CONNECTIONS = 768;
/** A steady load that leaves room for faults on two cores. */
const SOAK_CONNECTIONS = 16;
/** More than two cores can sell, so that a soak never runs out of sales. */
const SOAK_SALES_PER_MINUTE = 120;
const SOAK_UNITS_PER_SALE = 500;
/** Sales of a year that must be closed but not yet retired at the restart. */
const CLOSED_AT_RESTART = { share: 0.1, max: 200 };

export function yearPlan({ sales, orders, large, faults, seed, minutes }: YearFlags): RunPlan {
  const shareOf = (fault: number): number => (fault + 1) / (faults + 1);
  return {
    name: 'year',
    seed,
    sales: planSales({ sales, orders, large }, createRandom(`${seed} year`)),
    connections: YEAR_CONNECTIONS,
    aheadMin: 10_000,
    ordersMin: orders,
    faultsMin: faults,
    faultKinds: KILLS,
    faultStep: 1 / (faults + 1),
    faultDue: ({ soldSales, faults: done }) =>
      done < faults && soldSales >= Math.min(sales, Math.max(1, Math.round(shareOf(done) * sales)))
        ? shareOf(done)
        : null,
    sellsMaxMs: minutes * 60_000,
    endsByTime: false,
    closedAtRestart: Math.min(CLOSED_AT_RESTART.max, Math.floor(sales * CLOSED_AT_RESTART.share)),
  };
}

export function soakPlan({ minutes, faultEveryS, seed }: SoakFlags): RunPlan {
  const [runMs, everyMs] = [minutes * 60_000, faultEveryS * 1000];
  const sales = minutes * SOAK_SALES_PER_MINUTE;
  const size = { sales, orders: sales * SOAK_UNITS_PER_SALE, large: 0 };
  return {
    name: 'soak',
    seed,
    sales: planSales(size, createRandom(`${seed} soak`)).map((sale) => ({ ...sale, last: false })),
    connections: SOAK_CONNECTIONS,
    aheadMin: 1_000,
    ordersMin: 1,
    faultsMin: 0,
    faultKinds: FAULT_KINDS,
    faultStep: everyMs / runMs,
    faultDue: ({ elapsedMs, quietMs }) => (quietMs >= everyMs && elapsedMs < runMs ? elapsedMs / runMs : null),
    sellsMaxMs: runMs,
    endsByTime: true,
    closedAtRestart: 0,
  };
}

/** Units per wanted order, because on a busy machine some buyers come after the end of their sale. */
const SPARE = 1.02;
/** Share of the orders that large sales have. */
const LARGE_SHARE = 0.4;
/** Some buyers find nothing left, unless units are returned in time. */
const BUYERS_PER_UNIT = 1.03;
/** Share and relative size of the last small sales. They end together, so that Redis has many sales at the restart. */
const LAST = { share: 0.1, size: 0.2 } as const;
/** Every second large sale has two buckets. */
const LARGE_BUCKETS = 2;
/** The smallest and the largest of the small sales, relative to the mean. */
const SMALL_SPREAD = [0.3, 1.7] as const;

/** Returns sales in order of opening: small sales, large sales at equal intervals, and the smallest sales last. */
function planSales(
  { sales, orders: wanted, large }: Pick<YearFlags, 'sales' | 'orders' | 'large'>,
  random: Random,
): PlannedSale[] {
  const orders = Math.ceil(wanted * SPARE);
  const small = sales - large;
  const last = Math.floor(small * LAST.share);
  const others = sales - last;
  const isLarge = (index: number): boolean =>
    index < others && Math.floor(((index + 1) * large) / others + 0.5) > Math.floor((index * large) / others + 0.5);
  const largeStock = large === 0 ? 0 : Math.floor((orders * (small === 0 ? 1 : LARGE_SHARE)) / large);
  const smallStock = orders - largeStock * large;
  const lastStock = last * Math.max(1, Math.round((LAST.size * smallStock) / small));
  const stockOfSmall = dividedStock(smallStock - lastStock, small - last, random);
  const stockOfLast = dividedStock(lastStock, last, random);
  let largeMade = 0;
  return Array.from({ length: sales }, (_, index) => {
    const big = isLarge(index);
    const stock = big ? largeStock : index < others ? stockOfSmall() : stockOfLast();
    return {
      index,
      sku: `long-${String(index).padStart(5, '0')}`,
      stock,
      buyers: Math.ceil(stock * BUYERS_PER_UNIT),
      buckets: big && largeMade++ % 2 === 1 ? LARGE_BUCKETS : 1,
      large: big,
      last: index >= others,
    };
  });
}

/** Returns the stock of the next sale at each call. All calls together return all units. */
function dividedStock(units: number, sales: number, random: Random): () => number {
  let unitsLeft = units;
  let salesLeft = sales;
  return () => {
    const mean = unitsLeft / salesLeft;
    const [least, most] = SMALL_SPREAD.map((share) => Math.max(1, Math.round(mean * share))) as [number, number];
    const stock = salesLeft === 1 ? Math.max(1, unitsLeft) : random.whole(least, most);
    unitsLeft -= stock;
    salesLeft--;
    return stock;
  };
}
