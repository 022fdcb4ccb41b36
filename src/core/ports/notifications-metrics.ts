/** How a change that somebody waited for was found: it was told, or a look found it. */
export type FoundBy = 'news' | 'look';

/** What the api counts of buyers who wait. */
export interface NotificationsMetrics {
  changeFound(by: FoundBy): void;
}
