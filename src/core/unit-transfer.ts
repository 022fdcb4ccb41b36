/** The most buckets a sale may have. Each refusal of its last units looks at all of them, twice. */
export const BUCKETS_MAX = 64;

/** The last units that a bucket has given to another one. The numbers of a pair follow each other from 1. */
export interface OutgoingTransfer {
  /** The bucket that gets them. */
  readonly to: number;
  readonly seq: number;
  readonly units: number;
  /** Whether the lender does not know yet that they have arrived; until then it lends that bucket no others. */
  readonly isOpen: boolean;
  /** Since they left, ms. */
  readonly ageMs: number;
}

/** What a bucket knows of units that came and went; both lists are bounded by the buckets of the sale. */
export interface BucketTransfers {
  readonly outgoing: readonly OutgoingTransfer[];
  /** Lender → number of the last transfer that arrived from it. */
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
  /** Whether they have left one bucket and not reached the other; else only the word that they have is missing. */
  readonly inTransit: boolean;
  readonly ageMs: number;
}

/** Every transfer that somebody has still to finish. @param buckets of one sale, in their order */
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

/** Units that are in no bucket. */
export const unitsInTransit = (buckets: readonly BucketTransfers[]): number =>
  openTransfers(buckets).reduce((sum, { inTransit, units }) => sum + (inTransit ? units : 0), 0);

/** Equal for two looks between which no unit has left a bucket for another one or arrived there. */
export function transfersSeen(buckets: readonly BucketTransfers[]): string {
  return buckets
    .map(({ outgoing, incoming }) => {
      const left = outgoing.map(({ to, seq }) => `${to}=${seq}`);
      const came = [...incoming].map(([from, seq]) => `${from}=${seq}`);
      return `${left.join()}/${came.join()}`;
    })
    .join(';');
}

export const NO_TRANSFERS: BucketTransfers = Object.freeze({ outgoing: [], incoming: new Map<number, number>() });
