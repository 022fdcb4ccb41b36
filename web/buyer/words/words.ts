import type { Chip, Screen } from '../screen.js';
import type { ProblemCode } from '../problem-codes.js';
import type { News } from '../state.js';

type ScreenText = { readonly title: string; readonly text: string };
/** Names of screens, and names of their variants when more is known. */
export type TextName = Screen['name'] | 'offline' | 'turn' | 'sign_in_ended' | 'asking_again' | 'time_up';

/**
 * Why a purchase failed after it was accepted, as named by the API. A test compares them with the reasons of orders.
 */
export const REASONS = [
  'oversold_guard',
  'limit_reached',
  'discarded',
  'units_lost',
  'compensation_failed',
  'refused_by_database',
] as const;
type Reason = (typeof REASONS)[number];

/** All texts of the page, in a language. Prices and times are passed in as formatted texts. */
export interface Words {
  readonly lang: string;
  readonly chips: Readonly<Record<Chip, string>>;
  readonly units: (count: number) => string;
  readonly each: (price: string) => string;
  readonly total: string;
  readonly quantity: string;
  readonly coupon: string;
  readonly noCoupon: string;
  readonly couponTakes: (price: string) => string;
  readonly more: string;
  readonly fewer: string;
  readonly opensAt: (when: string) => string;
  readonly days: string;
  readonly hours: string;
  readonly minutes: string;
  readonly seconds: string;
  readonly place: (position: string) => string;
  readonly placeUnknown: string;
  readonly estimate: (minutes: number) => string;
  readonly estimateUnknown: string;
  readonly drawAtOpening: string;
  readonly inRoomBefore: (position: string) => string;
  readonly buttons: {
    readonly buy: (price: string) => string;
    readonly notOpen: string;
    readonly opening: string;
    readonly sending: string;
    readonly soldOut: string;
    readonly paused: string;
    readonly closed: string;
    readonly busy: string;
    readonly room: string;
    readonly preparing: string;
    readonly signIn: string;
    readonly signInAgain: string;
    readonly stayAs: (name: string) => string;
    readonly goOnAs: (name: string) => string;
    readonly pause: (time: string) => string;
    readonly held: string;
    readonly pay: (price: string) => string;
    readonly paying: string;
    readonly cancel: string;
    readonly cancelling: string;
    readonly cancelYes: string;
    readonly cancelNo: string;
    readonly again: string;
    readonly stop: string;
    readonly retry: string;
  };
  readonly screens: Readonly<Record<TextName, ScreenText>>;
  readonly cancelSure: string;
  readonly orderNumber: string;
  readonly timeToPay: string;
  readonly turnEnds: string;
  readonly refund: (price: string) => string;
  readonly refunded: (price: string) => string;
  readonly limit: (count: number) => string;
  readonly payWithin: (time: string) => string;
  readonly until: (when: string) => string;
  readonly once: string;
  readonly offline: string;
  readonly slow: string;
  readonly signInEarly: string;
  readonly toShop: string;
  readonly signedInAs: string;
  readonly linkFor: (name: string) => string;
  readonly otherLanguage: string;
  readonly factsTitle: string;
  readonly news: {
    readonly title: string;
    readonly seen: string;
    readonly types: Readonly<Record<News['type'], string>>;
  };
  /** Announcements for a screen reader. */
  readonly says: {
    readonly in: (time: string) => string;
    readonly open: string;
    readonly back: string;
    readonly turn: string;
    readonly payIn: (time: string) => string;
  };
  readonly problems: Readonly<Record<ProblemCode, string>>;
  readonly reasons: Readonly<Record<Reason, string>>;
  readonly reasonUnknown: string;
}

export const reasonIn = (words: Words, reason: string): string => {
  const known = REASONS.find((one) => one === reason);
  return known === undefined ? words.reasonUnknown : words.reasons[known];
};
