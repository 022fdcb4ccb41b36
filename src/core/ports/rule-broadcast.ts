import type { StoredRules } from './rule-repository.js';

/**
 * What the board says to one who knows a version.
 * - `level`: nothing newer hangs there
 * - `newer`: these rules do
 * - `behind`: not even the known version does; somebody must look at the store and put it up
 */
export type RuleAnnouncement =
  | { readonly board: 'level' }
  | { readonly board: 'newer'; readonly stored: StoredRules }
  | { readonly board: 'behind' };

/** Where every process sees new rules at once. It may forget: the store is the truth. */
export interface RuleBroadcast {
  /** @throws OperationalError redis */
  notificationsSince(version: number): Promise<RuleAnnouncement>;

  /** Puts rules up, unless newer ones hang there. Safe to repeat. @throws OperationalError redis */
  post(stored: StoredRules): Promise<void>;
}
