import { useEffect } from 'preact/hooks';
import { pathOf, type Route } from '../logic/routes.js';
import { Dialog } from '../parts/dialog.js';
import { Check } from '../parts/fields.js';
import { navigate, readAgain, useStore, useWords } from './hooks.js';
import { nextTheme, singleKeys } from './preferences.js';

/** The second key of `g …`, and the screen it opens. */
const GO_KEYS = {
  l: { route: { screen: 'live' }, name: 'live' },
  s: { route: { screen: 'sales', tab: 'week' }, name: 'sales' },
  p: { route: { screen: 'purchases', id: null }, name: 'purchases' },
  m: { route: { screen: 'messages', tab: 'lag' }, name: 'messages' },
  d: { route: { screen: 'dead-letters', deadLetterId: null }, name: 'deadLetters' },
  f: { route: { screen: 'refunds' }, name: 'refunds' },
  c: { route: { screen: 'reconcile', tab: 'runs', runId: null }, name: 'reconcile' },
  u: { route: { screen: 'rules', tab: 'form' }, name: 'rules' },
  a: { route: { screen: 'audit' }, name: 'audit' },
  h: { route: { screen: 'health' }, name: 'health' },
} as const satisfies Record<string, { readonly route: Route; readonly name: string }>;

/** How long to wait for the second key after `g`. */
const SECOND_KEY_MS = 1_500;

export function useShortcuts({
  onHelp,
  onSearch,
}: {
  readonly onHelp: () => void;
  readonly onSearch: () => void;
}): void {
  useEffect(() => {
    let goneMs = -Infinity;
    const press = (event: KeyboardEvent): void => {
      if (!singleKeys.value || event.metaKey || event.ctrlKey || event.altKey) return;
      if ((event.target as Element).closest('input, textarea, select, dialog[open]') !== null) return;
      const isSecond = performance.now() - goneMs < SECOND_KEY_MS;
      goneMs = -Infinity;
      const go = isSecond ? Object.entries(GO_KEYS).find(([key]) => key === event.key) : undefined;
      const action = go
        ? () => navigate(pathOf(go[1].route))
        : { '?': onHelp, '/': onSearch, t: nextTheme, r: () => readAgain.set(readAgain.value + 1) }[event.key];
      if (action !== undefined) {
        event.preventDefault();
        action();
      } else if (event.key === 'g') goneMs = performance.now();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

export function ShortcutHelp({ onClose }: { readonly onClose: () => void }) {
  const { t } = useWords();
  const isOn = useStore(singleKeys);
  const rows: readonly (readonly [readonly string[], string])[] = [
    [['/'], t.shortcuts.search],
    [['?'], t.shortcuts.help],
    [['r'], t.shortcuts.reload],
    [['t'], t.shortcuts.theme],
    [['j', 'k'], t.shortcuts.rows],
    [['Enter'], t.shortcuts.openRow],
    [['Esc'], t.shortcuts.close],
  ];
  return (
    <Dialog title={t.shortcuts.title} onClose={onClose} shape="wide">
      <div class="columns">
        <dl class="keys">
          {rows.map(([keys, what]) => (
            <div key={what}>
              <dt>
                {keys.map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <dl class="keys">
          {Object.entries(GO_KEYS).map(([key, { name }]) => (
            <div key={key}>
              <dt>
                <kbd>g</kbd> <span class="faint">{t.shortcuts.then}</span> <kbd>{key}</kbd>
              </dt>
              <dd>{t.nav[name]}</dd>
            </div>
          ))}
        </dl>
      </div>
      <Check label={t.shortcuts.off} hint={t.shortcuts.offHint} checked={isOn} onChange={(on) => singleKeys.set(on)} />
    </Dialog>
  );
}
