/** Prefix of every screen's address: the screen follows after `/console/`. */
const BASE = '/console';

export const SALE_TABS = ['week', 'all'] as const;
export const MESSAGE_TABS = ['lag', 'halves', 'discarded', 'topics', 'browse', 'clients', 'webhooks'] as const;
export const RECONCILE_TABS = ['runs', 'jobs'] as const;
export const RULE_TABS = ['form', 'json', 'switches', 'versions', 'in-force'] as const;

export type Route =
  | { readonly screen: 'live' | 'refunds' | 'audit' | 'health' | 'unknown' }
  | { readonly screen: 'sales'; readonly tab: (typeof SALE_TABS)[number] }
  | { readonly screen: 'sale'; readonly saleId: string }
  /** Null before the first look-up. */
  | { readonly screen: 'purchases'; readonly id: string | null }
  | { readonly screen: 'messages'; readonly tab: (typeof MESSAGE_TABS)[number] }
  | { readonly screen: 'dead-letters'; readonly deadLetterId: string | null }
  | { readonly screen: 'reconcile'; readonly tab: (typeof RECONCILE_TABS)[number]; readonly runId: string | null }
  | { readonly screen: 'rules'; readonly tab: (typeof RULE_TABS)[number] };

export type Screen = Route['screen'];

/** @param path of the address, with `/console` */
export function routeOf(path: string): Route {
  const [screen = '', part, more] = path
    .slice(BASE.length)
    .split('/')
    .filter((piece) => piece !== '')
    .map(decoded);
  if (more !== undefined && screen !== 'reconcile') return { screen: 'unknown' };
  switch (screen) {
    case '':
      return { screen: 'live' };
    case 'live':
    case 'refunds':
    case 'audit':
    case 'health':
      return part === undefined ? { screen } : { screen: 'unknown' };
    case 'sales':
      if (part !== undefined && /^[1-9][0-9]*$/.test(part)) return { screen: 'sale', saleId: part };
      return withTab(screen, SALE_TABS, part);
    case 'purchases':
      return { screen, id: part ?? null };
    case 'messages':
      return withTab(screen, MESSAGE_TABS, part);
    case 'dead-letters':
      return { screen, deadLetterId: part ?? null };
    case 'reconcile':
      if (part === 'runs' && more !== undefined) return { screen, tab: 'runs', runId: more };
      if (more !== undefined) return { screen: 'unknown' };
      if (part === undefined || part === 'runs') return { screen, tab: 'runs', runId: null };
      return part === 'jobs' ? { screen, tab: 'jobs', runId: null } : { screen: 'unknown' };
    case 'rules':
      return withTab(screen, RULE_TABS, part);
    default:
      return { screen: 'unknown' };
  }
}

export function pathOf(route: Route): string {
  const parts = ((): readonly string[] => {
    switch (route.screen) {
      case 'sale':
        return ['sales', route.saleId];
      case 'purchases':
        return route.id === null ? ['purchases'] : ['purchases', route.id];
      case 'dead-letters':
        return route.deadLetterId === null ? ['dead-letters'] : ['dead-letters', route.deadLetterId];
      case 'reconcile':
        return route.runId === null ? ['reconcile', route.tab] : ['reconcile', 'runs', route.runId];
      case 'sales':
      case 'messages':
      case 'rules':
        return [route.screen, route.tab];
      case 'live':
      case 'refunds':
      case 'audit':
      case 'health':
      case 'unknown':
        return [route.screen];
    }
  })();
  return [BASE, ...parts.map(encodeURIComponent)].join('/');
}

/** Returns the same text for two routes of the same screen, even if they differ by a tab or an open dialog. */
export const placeOf = (route: Route): string =>
  route.screen === 'sale' || route.screen === 'purchases' ? pathOf(route) : route.screen;

function withTab<S extends 'sales' | 'messages' | 'rules', T extends string>(
  screen: S,
  tabs: readonly T[],
  part: string | undefined,
): Route {
  const tab = part === undefined ? tabs[0] : tabs.find((known) => known === part);
  return tab === undefined ? { screen: 'unknown' } : ({ screen, tab } as unknown as Route);
}

function decoded(piece: string): string {
  try {
    return decodeURIComponent(piece);
  } catch {
    return piece; // a percent sign that the user typed
  }
}
