import type { HalfMessage, Message } from '../../contract/broker.js';
import { DEAD_LETTERS, GROUP_TOPICS, GROUPS } from '../../core/topics.js';

export interface NamedGroup {
  readonly group: string;
  /** Null if unknown. In that case, only topics that the group has read are found. */
  readonly topic: string | null;
}

/** Our own groups: the consumers, and the collectors of their dead letters. */
export const OWN_GROUPS: readonly NamedGroup[] = [
  ...Object.values(GROUPS).map((group) => ({ group, topic: GROUP_TOPICS[group] })),
  ...Object.values(DEAD_LETTERS).map(({ collector, topic }) => ({ group: collector, topic })),
];

/** A position in a queue, or in every queue the messages stored at or after this time. */
export type BrowseFrom = { readonly queueId: number; readonly offset: number } | { readonly sinceMs: number };

export function browseFrom({
  since,
  queue,
  offset,
}: {
  readonly since?: number | undefined;
  readonly queue?: number | undefined;
  readonly offset?: number | undefined;
}): BrowseFrom | null {
  if (since !== undefined) return { sinceMs: since };
  return queue === undefined || offset === undefined ? null : { queueId: queue, offset };
}

export interface BrowseLimits {
  readonly max: number;
  /** Total length of the bodies, in characters. Always returns the first message, however long it is. */
  readonly bodiesMax: number;
}

/** Oldest first. */
export interface Browsed {
  readonly messages: readonly Message[];
  /** Whether there are more messages beyond the limits. */
  readonly more: boolean;
}

/** Oldest first. */
export interface OpenHalves {
  readonly open: readonly HalfMessage[];
  /** Whether there are more open half messages than one inspection reads. */
  readonly more: boolean;
}
