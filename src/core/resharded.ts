/** Why a sale was not split into more buckets; the words are told in `SCATTER_SENTENCES`. */
export type NotResharded =
  'already_resharded' | 'not_a_multiple' | 'in_repair' | 'superseded' | 'draft' | 'closed' | 'not_found';

/** A sale has so many buckets from now on. Buyers were shut out for `shutMs`. */
interface ReshardedSale {
  readonly outcome: 'resharded';
  readonly buckets: number;
  readonly epoch: number;
  readonly unitsLeft: number;
  readonly shutMs: number;
}

export type Resharded = ReshardedSale | { readonly outcome: NotResharded };

/** For a person; nothing was changed, but for `superseded`. */
export const RESHARD_SENTENCES: Readonly<Record<NotResharded, string>> = {
  already_resharded: 'The sale has so many buckets already.',
  not_a_multiple: 'A sale can only be split into a multiple of the buckets that it has.',
  in_repair: 'The books of the sale are being rebuilt, or wait for it. Ask again when that is done.',
  superseded: 'A repair took the sale over, or somebody else has split it. Look at it again.',
  draft: 'The sale is a draft. Create it with as many buckets as it is to have.',
  closed: 'The sale is over.',
  not_found: 'There is no such sale.',
};
