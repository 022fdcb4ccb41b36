/** Why a sale was not split into more buckets; the words are told in `SCATTER_SENTENCES`. */
export type NotScattered =
  'already_scattered' | 'not_a_multiple' | 'in_repair' | 'superseded' | 'draft' | 'closed' | 'not_found';

/** A sale has so many buckets from now on. Buyers were shut out for `shutMs`. */
export interface ScatteredSale {
  readonly outcome: 'scattered';
  readonly buckets: number;
  readonly epoch: number;
  readonly unitsLeft: number;
  readonly shutMs: number;
}

export type Scattered = ScatteredSale | { readonly outcome: NotScattered };

/** For a person; nothing was changed, but for `superseded`. */
export const SCATTER_SENTENCES: Readonly<Record<NotScattered, string>> = {
  already_scattered: 'The sale has so many buckets already.',
  not_a_multiple: 'A sale can only be split into a multiple of the buckets that it has.',
  in_repair: 'The books of the sale are being rebuilt, or wait for it. Ask again when that is done.',
  superseded: 'A repair took the sale over, or somebody else has split it. Look at it again.',
  draft: 'The sale is a draft. Create it with as many buckets as it is to have.',
  closed: 'The sale is over.',
  not_found: 'There is no such sale.',
};
