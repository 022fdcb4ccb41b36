import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Api } from '../api/client.js';
import { followLive } from '../api/live-feed.js';
import type { SessionState } from '../api/session.js';
import type { Me } from '../api/types.js';
import { LANGUAGE_NAMES, LANGUAGES } from '../i18n/language.js';
import type { LiveStore } from '../logic/live-store.js';
import { placeOf, routeOf, type Route } from '../logic/routes.js';
import { Dialog } from '../parts/dialog.js';
import { Segments } from '../parts/fields.js';
import { Button, ScreenHead } from '../parts/basics.js';
import { Empty, Failure, Guarded, Loading } from '../parts/states.js';
import { AuditScreen } from '../screens/audit.js';
import { DeadLettersScreen } from '../screens/dead-letters.js';
import { HealthScreen } from '../screens/health.js';
import { LiveScreen } from '../screens/live.js';
import { MessagesScreen } from '../screens/messages.js';
import { PurchasesScreen } from '../screens/purchases.js';
import { ReconcileScreen } from '../screens/reconcile.js';
import { RefundsScreen } from '../screens/refunds.js';
import { draftOfRules, RulesScreen } from '../screens/rules.js';
import { SaleScreen } from '../screens/sale.js';
import { SalesScreen } from '../screens/sales.js';
import { AppContext, readAgain, useAddress, useStore, useWords } from './hooks.js';
import { Frame } from './frame.js';
import { language } from './preferences.js';
import { SignIn } from './sign-in.js';

/**
 * Shows the sign-in page, or the screen of the address for a signed-in user. When a token ends, the screen stays behind
 * the request for the next token.
 */
export function Console({ api, live }: { readonly api: Api; readonly live: LiveStore }) {
  const state = useStore(api.session.state);
  const { t } = useWords();
  const last = useRef<Me | null>(null);
  if (state.is === 'signed_in') last.current = state.me;
  if (state.is === 'signed_out') last.current = null;
  const me = state.is === 'signed_in' || state.is === 'ended' ? (last.current ?? state.me) : null;
  const isIn = state.is === 'signed_in';
  useEffect(() => {
    if (!isIn) return undefined;
    let ending = new AbortController();
    const follow = (): void => {
      ending.abort();
      ending = new AbortController();
      void followLive(api, live, window, ending.signal);
    };
    // A page that the browser keeps for its Back button would also keep its stream, and a browser allows only six
    // connections.
    const hide = (): void => ending.abort();
    const show = (event: PageTransitionEvent): void => void (event.persisted && follow());
    follow();
    addEventListener('pagehide', hide);
    addEventListener('pageshow', show);
    return () => {
      ending.abort();
      removeEventListener('pagehide', hide);
      removeEventListener('pageshow', show);
    };
  }, [isIn, api, live]);
  useEffect(() => {
    if (state.is !== 'signed_out') return;
    live.clear(); // another user may sign in
    draftOfRules.set(null);
  }, [state]);

  const app = useMemo(() => (me === null ? null : { api, live, me }), [api, live, me]);
  if (state.is === 'checking') return <Loading />;
  if (state.is === 'unreachable') {
    return (
      <Door title={t.signIn.waitingTitle}>
        <Failure error={state.error} title={t.signIn.waitingText} onRetry={() => void api.session.restore()} />
        <Button kind="quiet" onClick={() => api.session.signOut()}>
          {t.signIn.out}
        </Button>
      </Door>
    );
  }
  if (app === null) {
    return (
      <Door title={t.signIn.title}>
        <SignIn session={api.session} />
      </Door>
    );
  }
  return (
    <AppContext.Provider value={app}>
      <Screens />
      {state.is === 'ended' && (
        <Dialog title={endTitle(state, t)} onClose={() => undefined} isFinal>
          <p>{t.signIn.again(state.me.userId)}</p>
          <SignIn session={api.session} onDone={() => readAgain.set(readAgain.value + 1)} />
          <Button kind="quiet" onClick={() => api.session.signOut()}>
            {t.signIn.out}
          </Button>
        </Dialog>
      )}
    </AppContext.Provider>
  );
}

const endTitle = (state: Extract<SessionState, { is: 'ended' }>, t: ReturnType<typeof useWords>['t']): string =>
  state.why === 'expired' ? t.signIn.expiredTitle : t.signIn.refusedTitle;

function Door({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  const { t } = useWords();
  const chosen = useStore(language);
  useEffect(() => {
    document.title = `${title} · Seckill`;
  }, [title]);
  return (
    <main class="door">
      <div class="door-box">
        <div class="brand">
          <span class="mark" aria-hidden="true" />
          <b>{t.product}</b> <span class="faint">{t.console}</span>
        </div>
        <h1>{title}</h1>
        {children}
      </div>
      <Segments
        label={t.shell.language}
        value={chosen}
        options={LANGUAGES.map((one) => [one, LANGUAGE_NAMES[one]] as const)}
        onPick={(picked) => language.set(picked)}
      />
    </main>
  );
}

function Screens() {
  const { path } = useAddress();
  const { t } = useWords();
  const route = useMemo(() => routeOf(path), [path]);
  const place = placeOf(route);
  const shown = useRef(place);
  useEffect(() => {
    if (place === shown.current) return;
    shown.current = place;
    document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true }); // the focused element is gone
  }, [place]);
  return (
    <Frame screen={route.screen}>
      <Guarded
        key={route.screen}
        fallback={(retry) => (
          <Empty title={t.states.crashTitle} text={t.states.crashText} icon="bad">
            <Button onClick={retry}>{t.common.retry}</Button>
          </Empty>
        )}
      >
        <Screen route={route} />
      </Guarded>
    </Frame>
  );
}

function Screen({ route }: { readonly route: Route }) {
  switch (route.screen) {
    case 'live':
      return <LiveScreen />;
    case 'sales':
      return <SalesScreen tab={route.tab} />;
    case 'sale':
      return <SaleScreen key={route.saleId} saleId={route.saleId} />;
    case 'purchases':
      return <PurchasesScreen id={route.id} />;
    case 'messages':
      return <MessagesScreen tab={route.tab} />;
    case 'dead-letters':
      return <DeadLettersScreen openId={route.deadLetterId} />;
    case 'refunds':
      return <RefundsScreen />;
    case 'reconcile':
      return <ReconcileScreen tab={route.tab} runId={route.runId} />;
    case 'rules':
      return <RulesScreen tab={route.tab} />;
    case 'audit':
      return <AuditScreen />;
    case 'health':
      return <HealthScreen />;
    case 'unknown':
      return <NotFound />;
  }
}

function NotFound() {
  const { t } = useWords();
  return (
    <>
      <ScreenHead title={t.states.notFoundTitle} />
      <Empty title={t.states.notFoundTitle} text={t.states.notFoundText} icon="info" />
    </>
  );
}
