/** Why a sale was not split into more buckets; `RESHARD_SENTENCES` has a sentence for each word. */
export type NotResharded =
  'already_resharded' | 'not_a_multiple' | 'in_repair' | 'superseded' | 'draft' | 'closed' | 'not_found';

/** The sale has `buckets` buckets now. It was locked for `lockedMs`, during which nobody could buy. */
export interface ReshardedSale {
  readonly outcome: 'resharded';
  readonly buckets: number;
  readonly epoch: number;
  readonly unitsLeft: number;
  readonly lockedMs: number;
}

export type Resharded = ReshardedSale | { readonly outcome: NotResharded };

/** For operators. Nothing was changed, except after `superseded`. */
export const RESHARD_SENTENCES: Readonly<Record<NotResharded, string>> = {
  already_resharded: 'The sale already has that many buckets.',
  not_a_multiple: 'A sale can only be split into a multiple of the buckets that it has.',
  in_repair: 'The sale is being rebuilt in Redis, or waits for it. Try again when that is done.',
  superseded: 'A repair took over, or another reshard was faster. Check the sale and try again.',
  draft: 'The sale is a draft. Create it with as many buckets as it is to have.',
  closed: 'The sale is over.',
  not_found: 'There is no such sale.',
};
