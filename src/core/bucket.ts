/** To find a sale sold out, a program reads all its buckets twice. */
export const BUCKETS_MAX = 64;

/** A slice of the stock of a sale. */
export interface BucketRef {
  readonly saleId: string;
  readonly bucket: number;
}

export interface SaleBuckets {
  readonly saleId: string;
  readonly buckets: number;
}

/** The home bucket of some buyers, with the number of buckets of the sale. */
export interface HomeBucket extends BucketRef, SaleBuckets {}

/**
 * A bucket with the number of buckets that the caller assumes. After a reshard, a bucket with another number answers as
 * if in repair, because its buyers may have moved. Without a number, the read cannot notice a reshard.
 */
export type AskedBucket = BucketRef & Partial<SaleBuckets>;

/** Lists every bucket of a sale, in order. */
export const bucketRefsOf = ({ saleId, buckets }: SaleBuckets): BucketRef[] =>
  Array.from({ length: buckets }, (_, bucket) => ({ saleId, bucket }));

/** Lists every bucket of a sale, in order, with the number of buckets, so that reads notice a reshard. */
export const askedBucketsOf = ({ saleId, buckets }: SaleBuckets): AskedBucket[] =>
  Array.from({ length: buckets }, (_, bucket) => ({ saleId, bucket, buckets }));

/** FNV-1a over the user id. Units move between buckets, but buyers move only when the sale is resharded. */
export function homeBucket(userId: string, buckets: number): number {
  if (buckets === 1) return 0;
  return hash32(userId) % buckets;
}

const LANES = BUCKETS_MAX;
/**
 * Returns the lane of a buyer, for a proxy that sends each lane to one api. A lane has one home bucket in a sale with
 * 2, 4, 8, 16, 32 or 64 buckets, so each api serves few buckets and fills larger batches.
 */
export const laneOf = (userId: string): number => hash32(userId) % LANES;

export const homeBucketOf = ({ saleId, buckets }: SaleBuckets, userId: string): HomeBucket => ({
  saleId,
  bucket: homeBucket(userId, buckets),
  buckets,
});

/** Returns a key with the number of buckets, because processes may assume different numbers after a reshard. */
export const bucketName = ({ saleId, bucket, buckets }: HomeBucket): string => `${saleId}:${bucket}/${buckets}`;

/** Returns a key for a bucket in maps, which does not depend on the number of buckets of the sale. */
export const bucketRefName = ({ saleId, bucket }: BucketRef): string => `${saleId}:${bucket}`;

/** Lists the buyer's bucket and all earlier ones. A reshard multiplies the buckets: earlier ones have lower numbers. */
export function homesEver(userId: string, buckets: number): number[] {
  if (buckets === 1) return [0];
  const hash = hash32(userId);
  const homes = new Set<number>();
  for (let earlier = 1; earlier <= buckets; earlier++) if (buckets % earlier === 0) homes.add(hash % earlier);
  return [...homes];
}

/** Returns the initial units of a bucket. Shares are equal, and the first buckets take the remainder. */
export function unitsOfBucket(sale: { readonly stock: number; readonly buckets: number }, bucket: number): number {
  return Math.floor(sale.stock / sale.buckets) + (bucket < sale.stock % sale.buckets ? 1 : 0);
}

/** FNV-1a, 32 bits. Stable across releases: stored ids and buckets depend on it. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** The last transfer from one bucket to another. Each pair of buckets numbers its transfers from 1. */
export interface OutgoingTransfer {
  /** The bucket that receives the units. */
  readonly to: number;
  readonly seq: number;
  readonly units: number;
  /** Whether the arrival is unconfirmed. Until it is confirmed, the bucket sends no other units there. */
  readonly isOpen: boolean;
  /** Time since the units left, ms. */
  readonly ageMs: number;
}

/** The transfers that a bucket remembers. Each list has at most one entry per bucket of the sale. */
export interface BucketTransfers {
  readonly outgoing: readonly OutgoingTransfer[];
  /** Sending bucket → last transfer that arrived. */
  readonly incoming: ReadonlyMap<number, number>;
}

/** Units on their way from one bucket to another. */
export interface UnitTransfer {
  readonly from: number;
  readonly to: number;
  readonly seq: number;
  readonly units: number;
}

export interface OpenTransfer extends UnitTransfer {
  /** Whether the units are in no bucket. If not, only `transfer-end` is missing. */
  readonly inTransit: boolean;
  readonly ageMs: number;
}

/** @param buckets of one sale, in order */
export function openTransfers(buckets: readonly BucketTransfers[]): OpenTransfer[] {
  return buckets.flatMap(({ outgoing }, from) =>
    outgoing
      .filter(({ isOpen }) => isOpen)
      .map(({ to, seq, units, ageMs }) => {
        const inTransit = seq > (buckets[to]?.incoming.get(from) ?? 0);
        return { from, to, seq, units, ageMs, inTransit };
      }),
  );
}

/** Counts the units that are in no bucket. */
export const unitsInTransit = (buckets: readonly BucketTransfers[]): number =>
  openTransfers(buckets).reduce((sum, { inTransit, units }) => sum + (inTransit ? units : 0), 0);

/** Returns a text. It is the same for two reads if no unit left for another bucket, or arrived from one, in between. */
export function transfersFingerprint(buckets: readonly BucketTransfers[]): string {
  return buckets
    .map(({ outgoing, incoming }) => {
      const left = outgoing.map(({ to, seq }) => `${to}=${seq}`);
      const came = [...incoming].map(([from, seq]) => `${from}=${seq}`);
      return `${left.join()}/${came.join()}`;
    })
    .join(';');
}
