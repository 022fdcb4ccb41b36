import { Component, type ComponentChildren } from 'preact';
import type { ApiError } from '../api/api-error.js';
import { useNow, useWords } from '../shell/hooks.js';
import { Button } from './basics.js';
import { Icon, type IconName } from './icons.js';

/** Shown by a screen that has nothing to show. */

export function Empty({
  title,
  text,
  icon = 'check',
  children,
}: {
  readonly title: string;
  readonly text?: string;
  readonly icon?: IconName;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="blank">
      <Icon name={icon} />
      <p class="blank-title">{title}</p>
      {text && <p class="blank-text">{text}</p>}
      {children}
    </div>
  );
}

/** Grey bars in place of the expected content. */
export function Loading({ rows = 6 }: { readonly rows?: number }) {
  const { t } = useWords();
  return (
    <div class="loading" role="status">
      <span class="hidden">{t.common.loading}</span>
      {Array.from({ length: rows }, (_, index) => (
        <i key={index} />
      ))}
    </div>
  );
}

/** Shows an error of the API, with its code. */
export function Failure({
  error,
  onRetry,
  title,
}: {
  readonly error: ApiError;
  readonly onRetry?: () => void;
  readonly title?: string;
}) {
  const { t } = useWords();
  return (
    <div class="blank bad" role="alert">
      <Icon name="bad" />
      <p class="blank-title">{title ?? t.states.errorTitle}</p>
      <p class="blank-text">
        <ProblemText error={error} /> <code>{error.code}</code>
      </p>
      {onRetry && (
        <Button onClick={onRetry} icon="reload">
          {t.common.retry}
        </Button>
      )}
    </div>
  );
}

/** Shows the sentence of a problem. Sentences of the API are English, whatever the language of the console. */
export function ProblemText({ error, isAction = false }: { readonly error: ApiError; readonly isAction?: boolean }) {
  const { t } = useWords();
  if (error.code === 'unreachable') return <>{isAction ? t.problems.unreachable : t.states.unreachable}</>;
  if (error.code === 'role_needed') return <>{t.problems.role_needed}</>;
  if (error.code === 'no_problem') return <>{`${t.problems.no_problem} (${error.message})`}</>;
  return <span lang="en">{error.message}</span>;
}

interface ReadState {
  readonly error: ApiError | null;
  readonly readAtMs: number;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Shows the age of the data, with a mark if reading it again failed. */
export function Freshness({ error, readAtMs, reload, isLoading }: ReadState) {
  const { t, f } = useWords();
  const ageMs = Math.max(0, useNow() - readAtMs);
  const isStale = error !== null && readAtMs > 0;
  const age = f.duration(Math.floor(ageMs / 1000) * 1000);
  const text = isStale ? t.common.stale(age) : ageMs < 2_000 ? t.common.updatedNow : t.common.updated(age);
  return (
    <span class={isStale ? 'freshness stale' : 'freshness'} title={isStale ? error.message : undefined}>
      {isStale && <Icon name="warn" />}
      {readAtMs > 0 && <span>{text}</span>}
      <button
        type="button"
        class="icon-button"
        aria-label={t.common.reload}
        title={t.common.reload}
        onClick={reload}
        data-busy={isLoading}
      >
        <Icon name="reload" />
      </button>
    </span>
  );
}

/**
 * Shows the loading state, an error, or the data. Existing data stays while newer data is being read or cannot be read.
 */
export function Shown<T>({
  of,
  children,
  rows,
}: {
  readonly of: ReadState & { readonly data: T | null };
  readonly children: (data: T) => ComponentChildren;
  readonly rows?: number;
}) {
  if (of.data !== null) return <>{children(of.data)}</>;
  if (of.error !== null) return <Failure error={of.error} onRetry={of.reload} />;
  return <Loading rows={rows ?? 6} />;
}

export function Note({
  tone,
  children,
}: {
  readonly tone: 'info' | 'warn' | 'bad' | 'ok';
  readonly children: ComponentChildren;
}) {
  return (
    <div class={`note ${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      <Icon name={tone === 'ok' ? 'check' : tone} />
      <div>{children}</div>
    </div>
  );
}

/** Keeps a fault of a single screen from taking the console down. */
export class Guarded extends Component<
  { readonly children: ComponentChildren; readonly fallback: (retry: () => void) => ComponentChildren },
  { readonly failed: boolean }
> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override render() {
    return this.state.failed ? this.props.fallback(() => this.setState({ failed: false })) : this.props.children;
  }
}
