import type { FindingKind } from '../core/sale-finding.js';

/** The kind of a finding in tables. They keep an older name, because the previous release reads them too. */
export type StoredKind<K extends FindingKind = FindingKind> = Exclude<K, 'not_marked'> | 'unsettled';

export const storedKind = <K extends FindingKind>(kind: K): StoredKind<K> =>
  kind === 'not_marked' ? 'unsettled' : (kind as Exclude<K, 'not_marked'>);

export const kindOf = <K extends FindingKind>(stored: StoredKind<K>): K =>
  (stored === 'unsettled' ? 'not_marked' : stored) as K;
