import type { Random } from '../random.js';

/** A sale of the year, before it exists. */
export interface PlannedSale {
  /** Its place in the year, from 0. */
  readonly index: number;
  readonly sku: string;
  readonly stock: number;
  /** Each asks for one unit; some more than there is stock. */
  readonly buyers: number;
  readonly buckets: number;
  readonly large: boolean;
  /** One of those that come when all others are over. */
  readonly last: boolean;
}

export interface YearSize {
  /** In all. */
  readonly sales: number;
  /** Units of all sales together: as many orders at least. */
  readonly orders: number;
  /** Of the sales. */
  readonly large: number;
}

/** Units beyond the orders that are wanted: on a busy machine some buyers come after the end of their sale. */
const SPARE = 1.02;
/** Of the orders, if there are large sales. */
const LARGE_SHARE = 0.4;
/** Buyers who find nothing left, unless units come back in time. */
const BUYERS_PER_UNIT = 1.03;
/**
 * The last of the small sales, and their size against the mean: many end together, shortly before the year does, so that
 * its restart meets many sales that Redis still has.
 */
const LAST = { share: 0.1, size: 0.2 } as const;
/** A large sale in every second place has so many buckets. */
const LARGE_BUCKETS = 2;
/** The smallest and the largest of the small sales, against their mean. */
const SMALL_SPREAD = [0.3, 1.7] as const;

/** The sales of a year in the order in which they open: small ones of many sizes, large ones at equal distances, the smallest. */
export function planSales({ sales, orders: wanted, large }: YearSize, random: Random): PlannedSale[] {
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
      sku: `year-${String(index).padStart(5, '0')}`,
      stock,
      buyers: Math.ceil(stock * BUYERS_PER_UNIT),
      buckets: big && largeMade++ % 2 === 1 ? LARGE_BUCKETS : 1,
      large: big,
      last: index >= others,
    };
  });
}

/** The stock of one sale after the other; that of so many sales is all units. */
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

/** What is killed, and started again. */
const YEAR_FAULTS = [
  'api_killed',
  'worker_killed',
  'keeper_killed',
  'redis_killed',
  'mysql_killed',
  'broker_killed',
] as const;
export type YearFaultKind = (typeof YEAR_FAULTS)[number];

export interface PlannedFault {
  readonly kind: YearFaultKind;
  /** It comes when so many sales have been sold. */
  readonly afterSales: number;
}

/** The keeper is killed no later than here, so that the memory of the last one can be judged. */
const KEEPER_UNTIL = 0.4;

/** So many faults at equal distances, none a second time before every other one had its turn. */
export function planFaults(count: number, sales: number, random: Random): PlannedFault[] {
  const faults: PlannedFault[] = [];
  let left: YearFaultKind[] = [];
  while (faults.length < count) {
    const at = (faults.length + 1) / (count + 1);
    if (left.length === 0) left = random.shuffled(YEAR_FAULTS);
    // the keeper first while it may, and never later
    if (at > KEEPER_UNTIL) left = left.filter((kind) => kind !== 'keeper_killed');
    const next = at + 1 / (count + 1) > KEEPER_UNTIL && left.includes('keeper_killed') ? 'keeper_killed' : left[0];
    if (next === undefined) continue;
    left = left.filter((kind) => kind !== next);
    faults.push({ kind: next, afterSales: Math.max(1, Math.round(at * sales)) });
  }
  return faults;
}
