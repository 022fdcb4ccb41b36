import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { LANGUAGE_NAMES, LANGUAGES } from '../i18n/language.js';
import { STALE_AFTER_MS } from '../logic/live-store.js';
import { pathOf, type Route, type Screen } from '../logic/routes.js';
import { Badge, IconButton, Link } from '../parts/basics.js';
import { Segments } from '../parts/fields.js';
import { Icon, type IconName } from '../parts/icons.js';
import { useApp, useNow, useStore, useWords } from './hooks.js';
import { language, theme } from './preferences.js';
import { Search } from './search.js';
import { ShortcutHelp, useShortcuts } from './shortcuts.js';

type NavName =
  | 'live'
  | 'sales'
  | 'purchases'
  | 'messages'
  | 'deadLetters'
  | 'refunds'
  | 'reconcile'
  | 'rules'
  | 'audit'
  | 'health';

const NAV: readonly {
  readonly group: 'watch' | 'repair' | 'control';
  readonly items: readonly { readonly name: NavName; readonly route: Route; readonly screens: readonly Screen[] }[];
}[] = [
  {
    group: 'watch',
    items: [
      { name: 'live', route: { screen: 'live' }, screens: ['live'] },
      { name: 'sales', route: { screen: 'sales', tab: 'week' }, screens: ['sales', 'sale'] },
      { name: 'purchases', route: { screen: 'purchases', id: null }, screens: ['purchases'] },
      { name: 'messages', route: { screen: 'messages', tab: 'lag' }, screens: ['messages'] },
    ],
  },
  {
    group: 'repair',
    items: [
      { name: 'deadLetters', route: { screen: 'dead-letters', deadLetterId: null }, screens: ['dead-letters'] },
      { name: 'refunds', route: { screen: 'refunds' }, screens: ['refunds'] },
      { name: 'reconcile', route: { screen: 'reconcile', tab: 'runs', runId: null }, screens: ['reconcile'] },
    ],
  },
  {
    group: 'control',
    items: [
      { name: 'rules', route: { screen: 'rules', tab: 'form' }, screens: ['rules'] },
      { name: 'audit', route: { screen: 'audit' }, screens: ['audit'] },
      { name: 'health', route: { screen: 'health' }, screens: ['health'] },
    ],
  },
];

/**
 * The frame around every screen: the list of screens, the search, whether the figures are live, and the signed-in user.
 */
export function Frame({ screen, children }: { readonly screen: Screen; readonly children: ComponentChildren }) {
  const { t } = useWords();
  const [isNavOpen, setNavOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const focusSearch = useRef<() => void>(() => undefined);
  useShortcuts({ onHelp: () => setHelpOpen(true), onSearch: () => focusSearch.current() });
  useEffect(() => setNavOpen(false), [screen]);

  return (
    <div class="frame">
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>('#content')?.focus();
        }}
      >
        {t.skipToContent}
      </a>
      <aside class={isNavOpen ? 'sidebar open' : 'sidebar'}>
        <div class="brand">
          <span class="mark" aria-hidden="true" />
          <b>{t.product}</b> <span class="faint">{t.console}</span>
          <span class="only-phone">
            <IconButton icon="close" label={t.nav.close} onClick={() => setNavOpen(false)} />
          </span>
        </div>
        <nav aria-label={t.nav.label}>
          {NAV.map(({ group, items }) => (
            <section key={group}>
              <h2>{t.nav[group]}</h2>
              {items.map(({ name, route, screens }) => (
                <Link key={name} to={pathOf(route)} current={screens.includes(screen)}>
                  <Icon name={name satisfies IconName} />
                  <span>{t.nav[name]}</span>
                </Link>
              ))}
            </section>
          ))}
        </nav>
        <div class="side-foot">
          <button type="button" class="button quiet" onClick={() => setHelpOpen(true)}>
            <Icon name="keyboard" />
            {t.shell.shortcuts}
          </button>
        </div>
      </aside>
      {isNavOpen && <button type="button" class="veil" aria-label={t.nav.close} onClick={() => setNavOpen(false)} />}
      <div class="beside">
        <header class="top">
          <span class="only-phone">
            <IconButton icon="menu" label={t.nav.open} onClick={() => setNavOpen(true)} />
          </span>
          <Search focusOn={(focus) => (focusSearch.current = focus)} />
          <LiveSign />
          <AccountMenu onHelp={() => setHelpOpen(true)} />
        </header>
        <main id="content" tabIndex={-1}>
          {children}
        </main>
      </div>
      {isHelpOpen && <ShortcutHelp onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

/** Returns the age of the newest snapshot, ms, or null if none has arrived. */
export function useSnapshotAge(): number | null {
  const { live } = useApp();
  const { snapshot, receivedMs } = useStore(live.state);
  useNow();
  return snapshot === null ? null : performance.now() - receivedMs;
}

/** Returns a text about the age of old figures, or null if the figures are fresh. */
export function useStaleText(): string | null {
  const { t, f } = useWords();
  const ageMs = useSnapshotAge();
  return ageMs === null || ageMs <= STALE_AFTER_MS ? null : t.common.stale(f.duration(Math.round(ageMs / 1000) * 1000));
}

/** Shows whether figures arrive, and how many things need attention. */
function LiveSign() {
  const { live } = useApp();
  const { t, f } = useWords();
  const { snapshot, connection } = useStore(live.state);
  const ageMs = useSnapshotAge();
  const isStale = ageMs === null || ageMs > STALE_AFTER_MS;
  const urgent = snapshot?.conditions.filter(({ severity }) => severity !== 'info').length ?? 0;
  const age = ageMs === null ? '' : f.duration(Math.round(ageMs / 1000) * 1000);
  const isConnecting = connection === 'connecting' && ageMs === null;
  return (
    <div class="live-sign">
      {urgent > 0 && (
        <Link to={pathOf({ screen: 'live' })} class="conditions-sign">
          <Icon name="warn" /> {t.shell.conditions(f.number(urgent))}
        </Link>
      )}
      <span role="status" class="hidden">
        {!isStale ? t.shell.live : isConnecting ? t.shell.connecting : t.shell.lostNow}
      </span>
      {/* The age is not read out every second. */}
      <span aria-hidden="true">
        {!isStale ? (
          <span class="sign ok" title={t.shell.liveHint}>
            {t.shell.live}
          </span>
        ) : isConnecting ? (
          <span class="sign idle">{t.shell.connecting}</span>
        ) : (
          <span class="sign bad">{ageMs === null ? t.shell.lostNow : t.shell.lost(age)}</span>
        )}
      </span>
    </div>
  );
}

function AccountMenu({ onHelp }: { readonly onHelp: () => void }) {
  const { api, me } = useApp();
  const { t, f } = useWords();
  const [isOpen, setOpen] = useState(false);
  const now = useNow();
  const box = useRef<HTMLDivElement>(null);
  const chosenTheme = useStore(theme);
  const chosenLanguage = useStore(language);
  useEffect(() => {
    if (!isOpen) return undefined;
    const outside = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    const escape = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      setOpen(false);
      box.current?.querySelector('button')?.focus();
    };
    addEventListener('pointerdown', outside);
    addEventListener('keydown', escape);
    return () => {
      removeEventListener('pointerdown', outside);
      removeEventListener('keydown', escape);
    };
  }, [isOpen]);
  const leftMs = me.expiresAtMs - now;
  return (
    <div class="account" ref={box}>
      <button type="button" class="account-button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="user" />
        <span class="hidden">{t.shell.account}</span>
        <span class="account-name">{me.userId}</span>
        <Badge tone="idle">{t.shell.role[me.role]}</Badge>
      </button>
      {isOpen && (
        <div class="account-menu">
          <p>
            <b class="breaks">{me.userId}</b>
          </p>
          <p class="hint">{t.shell.roleHint[me.role]}</p>
          <p class={leftMs < 300_000 ? 'stale' : 'hint'}>
            {t.shell.expiresIn(f.duration(Math.max(0, Math.ceil(leftMs / 1000) * 1000)))}
          </p>
          <h3>{t.shell.theme.label}</h3>
          <Segments
            label={t.shell.theme.label}
            value={chosenTheme}
            options={[
              ['system', t.shell.theme.system],
              ['light', t.shell.theme.light],
              ['dark', t.shell.theme.dark],
            ]}
            onPick={(picked) => theme.set(picked)}
          />
          <h3>{t.shell.language}</h3>
          <Segments
            label={t.shell.language}
            value={chosenLanguage}
            options={LANGUAGES.map((one) => [one, LANGUAGE_NAMES[one]] as const)}
            onPick={(picked) => language.set(picked)}
          />
          <div class="menu-foot">
            <button
              type="button"
              class="button quiet"
              onClick={() => {
                setOpen(false);
                onHelp();
              }}
            >
              {t.shell.shortcuts}
            </button>
            <button type="button" class="button plain" onClick={() => api.session.signOut()}>
              {t.signIn.out}
            </button>
          </div>
        </div>
      )}
    </div>
  );
}
