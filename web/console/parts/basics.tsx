import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { pathOf } from '../logic/routes.js';
import type { Tone } from '../logic/time-line.js';
import { navigate, useNow, useWords } from '../shell/hooks.js';
import { Icon, type IconName } from './icons.js';

/** The small parts that screens are made of. */

interface ButtonProps {
  readonly children: ComponentChildren;
  readonly onClick: () => void;
  readonly kind?: 'plain' | 'main' | 'danger' | 'quiet';
  readonly icon?: IconName;
  readonly disabled?: boolean;
  readonly title?: string;
  readonly pressed?: boolean;
}

export function Button({ children, onClick, kind = 'plain', icon, disabled = false, title, pressed }: ButtonProps) {
  return (
    <button
      type="button"
      class={`button ${kind}`}
      onClick={onClick}
      disabled={disabled}
      title={title}
      aria-pressed={pressed}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A button that shows only an icon. */
export function IconButton({
  icon,
  label,
  onClick,
}: {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: () => void;
}) {
  return (
    <button type="button" class="icon-button" aria-label={label} title={label} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

/** Leads to another screen of the console, without loading the page again. */
export function Link({
  to,
  children,
  class: name,
  current,
}: {
  readonly to: string;
  readonly children: ComponentChildren;
  readonly class?: string;
  readonly current?: boolean;
}) {
  return (
    <a
      href={to}
      class={name}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        navigate(to);
      }}
    >
      {children}
    </a>
  );
}

/** A word in a colour that says how serious it is. The colour is never the only sign, because the word says it too. */
export function Badge({
  tone,
  children,
  title,
}: {
  readonly tone: Tone;
  readonly children: ComponentChildren;
  readonly title?: string | undefined;
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

/** @param at ISO 8601 or Unix ms */
const msOf = (at: string | number): number => (typeof at === 'number' ? at : Date.parse(at));

/** Shows a moment in the time zone of the browser, and in UTC on hover. */
export function Time({
  at,
  exact,
  ms,
}: {
  readonly at: string | number | null | undefined;
  readonly exact?: boolean;
  readonly ms?: boolean;
}) {
  const { f } = useWords();
  if (at === null || at === undefined) return <span class="faint">–</span>;
  const atMs = msOf(at);
  const shown = ms ? f.timeWithMs(atMs) : exact ? f.time(atMs) : f.dateTime(atMs);
  return (
    <time dateTime={new Date(atMs).toISOString()} title={f.utc(atMs)} class="number">
      {shown}
    </time>
  );
}

/** Shows how long ago, or in how long, something happens, and the exact time on hover. */
export function Ago({ at }: { readonly at: string | number }) {
  const { f } = useWords();
  const atMs = msOf(at);
  return (
    <time dateTime={new Date(atMs).toISOString()} title={`${f.dateTime(atMs)} · ${f.utc(atMs)}`} class="number">
      {f.relative(atMs - useNow())}
    </time>
  );
}

/**
 * Shows text that may be cut off, and the whole text on hover. Shows a dash for null.
 * @param lang language of a text from the server: `en`
 */
export function Cut({
  text,
  lang,
  as: Tag = 'span',
  faint = false,
}: {
  readonly text: string | null;
  readonly lang?: 'en';
  readonly as?: 'span' | 'code';
  readonly faint?: boolean;
}) {
  if (text === null) return <span class="faint">–</span>;
  return (
    <Tag class={faint ? 'cut faint' : 'cut'} lang={lang} title={text}>
      {text}
    </Tag>
  );
}

/** Shows the id of a sale as a link to its screen, or a dash for null. */
export function SaleLink({ saleId }: { readonly saleId: string | null }) {
  if (saleId === null) return <span class="faint">–</span>;
  return (
    <Link to={pathOf({ screen: 'sale', saleId })}>
      <code>{saleId}</code>
    </Link>
  );
}

/** Shows an id that can be copied. A long id is shortened, and shown in full on hover. */
export function Id({
  text,
  to,
  label,
}: {
  readonly text: string | null | undefined;
  readonly to?: string;
  readonly label?: string;
}) {
  const { t } = useWords();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [copied]);
  if (text === null || text === undefined || text === '') return <span class="faint">–</span>;
  const copy = (): void =>
    void navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => undefined,
    );
  return (
    <span class="id" title={text}>
      {to === undefined ? (
        <code>{text}</code>
      ) : (
        <Link to={to}>
          <code>{label ?? text}</code>
        </Link>
      )}
      <button
        type="button"
        class="copy"
        aria-label={`${copied ? t.common.copied : t.common.copy}: ${text}`}
        onClick={copy}
      >
        <Icon name={copied ? 'check' : 'copy'} />
      </button>
    </span>
  );
}

interface PanelProps {
  readonly title?: ComponentChildren;
  readonly hint?: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly flush?: boolean;
}

export function Panel({ title, hint, actions, children, flush }: PanelProps) {
  return (
    <section class="panel">
      {(title !== undefined || actions !== undefined) && (
        <header class="panel-head">
          <div>
            {title !== undefined && <h2>{title}</h2>}
            {hint && <p class="hint">{hint}</p>}
          </div>
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      <div class={flush ? 'panel-body flush' : 'panel-body'}>{children}</div>
    </section>
  );
}

export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The parts of a screen that each have an address. */
export function Tabs({
  label,
  tabs,
}: {
  readonly label: string;
  readonly tabs: readonly {
    readonly to: string;
    readonly text: string;
    readonly current: boolean;
    readonly count?: number;
  }[];
}) {
  const { f } = useWords();
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ to, text, current, count }) => (
        <Link key={to} to={to} current={current}>
          {text}
          {count !== undefined && count > 0 && <span class="count">{f.number(count)}</span>}
        </Link>
      ))}
    </nav>
  );
}

/** The head of a screen: its title, and its actions. */
export function ScreenHead({
  title,
  under,
  badge,
  actions,
}: {
  readonly title: string;
  readonly under?: ComponentChildren;
  readonly badge?: ComponentChildren;
  readonly actions?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · Seckill`;
  }, [title]);
  return (
    <header class="screen-head">
      <div class="screen-title">
        <h1 tabIndex={-1} title={title}>
          {title}
        </h1>
        {badge}
        {under && <div class="under">{under}</div>}
      </div>
      {actions && <div class="actions">{actions}</div>}
    </header>
  );
}

export function Figure({
  label,
  value,
  unit,
  under,
  tone,
  children,
  hint,
}: {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly unit?: string;
  readonly under?: ComponentChildren;
  readonly tone?: Tone;
  readonly children?: ComponentChildren;
  readonly hint?: string;
}) {
  return (
    <div class={`figure ${tone ?? ''}`} title={hint}>
      <div class="figure-label">{label}</div>
      <div class="figure-value">
        <span class="number">{value}</span>
        {unit && <span class="unit">{unit}</span>}
      </div>
      {under && <div class="figure-under">{under}</div>}
      {children}
    </div>
  );
}
