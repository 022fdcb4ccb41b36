import { useEffect, useRef, useState } from 'preact/hooks';
import { apiErrorOf, type ApiError } from '../api/api-error.js';
import type { BulkEnd, BulkPreview, BulkProgress } from '../api/types.js';
import { pathOf } from '../logic/routes.js';
import { boundTo, queryOf, type Filter } from '../logic/query.js';
import { Button, Link } from '../parts/basics.js';
import { Dialog } from '../parts/dialog.js';
import { TextField } from '../parts/fields.js';
import { Failure, Loading, Note, ProblemText } from '../parts/states.js';
import { serverNowMs, useApp, useWords } from '../shell/hooks.js';

export type BulkAction = 'replay' | 'discard';
/** The picked dead letters, or all matches. */
export type BulkOn = { readonly ids: readonly string[] } | { readonly filter: Filter };

type Stopped = BulkEnd['stopped'] | 'you' | 'lost';
type State =
  | { readonly is: 'looking' }
  | { readonly is: 'asked'; readonly preview: BulkPreview; readonly error?: ApiError }
  | { readonly is: 'running'; readonly preview: BulkPreview; readonly progress: BulkProgress | null }
  | { readonly is: 'ended'; readonly end: Omit<BulkEnd, 'stopped'> & { readonly stopped: Stopped } }
  | { readonly is: 'failed'; readonly error: ApiError };

const PATH = '/admin/v1/dead-letters/bulk';

/** Processes many dead letters: first a dry run that shows which, then each letter with its result. */
export function BulkDialog({
  action,
  on,
  onClose,
  onDone,
}: {
  readonly action: BulkAction;
  readonly on: BulkOn;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { api, live } = useApp();
  const { t, f } = useWords();
  const [state, setState] = useState<State>({ is: 'looking' });
  const [typed, setTyped] = useState('');
  const stop = useRef<AbortController | null>(null);
  // A letter that is parked after the dialog was opened was not shown to the user, so no run may touch it.
  const [body] = useState(() =>
    'ids' in on ? { action, ids: on.ids } : { action, filter: boundTo(on.filter, serverNowMs(live)) },
  );

  const look = async (): Promise<void> => {
    setState({ is: 'looking' });
    try {
      setState({
        is: 'asked',
        preview: await api.ask<BulkPreview>(PATH, { method: 'POST', body: { ...body, dryRun: true } }),
      });
    } catch (error) {
      setState({ is: 'failed', error: apiErrorOf(error) });
    }
  };
  useEffect(() => {
    void look();
    return () => stop.current?.abort();
  }, []);

  const run = async (preview: BulkPreview): Promise<void> => {
    const ending = new AbortController();
    stop.current = ending;
    let [done, failed] = [0, 0];
    const failures: { id: string; why: string }[] = [];
    let isBegun = false;
    setState({ is: 'running', preview, progress: null });
    const ended = (stopped: 'you' | 'lost'): State => ({
      is: 'ended',
      end: {
        done,
        failed,
        left: Math.max(0, Math.min(preview.matching, preview.most) - done - failed),
        stopped,
        failures,
      },
    });
    try {
      for await (const { event, data } of api.events(PATH, {
        method: 'POST',
        body: { ...body, dryRun: false },
        signal: ending.signal,
      })) {
        isBegun = true;
        if (event === 'progress') {
          const progress = JSON.parse(data) as BulkProgress;
          if (progress.ok) done++;
          else {
            failed++;
            if (failures.length < 100)
              failures.push({ id: progress.deadLetterId, why: progress.note ?? progress.outcome });
          }
          setState({ is: 'running', preview, progress });
        } else if (event === 'end') {
          setState({ is: 'ended', end: JSON.parse(data) as BulkEnd });
          onDone();
          return;
        }
      }
      setState(ended('lost'));
    } catch (error) {
      if (ending.signal.aborted) setState(ended('you'));
      else if (isBegun) setState(ended('lost'));
      else setState({ is: 'asked', preview, error: apiErrorOf(error) });
    }
    onDone();
  };

  const title = t.deadLetters[`${action}${'ids' in on ? 'Selected' : 'Matching'}`];
  const isRunning = state.is === 'running';
  const count = state.is === 'asked' ? Math.min(state.preview.matching, state.preview.most) : 0;
  const mustType = action === 'discard';
  return (
    <Dialog
      title={title}
      onClose={() => (isRunning ? undefined : onClose())}
      isFinal={isRunning}
      foot={
        state.is === 'asked' ? (
          <>
            <Button onClick={onClose}>{t.common.cancel}</Button>
            <Button
              kind={action === 'discard' ? 'danger' : 'main'}
              disabled={count === 0 || (mustType && typed.trim() !== String(count))}
              onClick={() => void run(state.preview)}
            >
              {`${t.deadLetters[action]} (${f.number(count)})`}
            </Button>
          </>
        ) : state.is === 'running' ? (
          <Button onClick={() => stop.current?.abort()}>{t.deadLetters.stop}</Button>
        ) : state.is === 'ended' ? (
          <>
            <Link
              to={
                pathOf({ screen: 'audit' }) +
                queryOf({ action: action === 'replay' ? 'dead_letter.replayed' : 'dead_letter.discarded' })
              }
            >
              {t.common.seeAudit}
            </Link>
            <Button kind="main" onClick={onClose}>
              {t.common.close}
            </Button>
          </>
        ) : (
          <Button onClick={onClose}>{t.common.close}</Button>
        )
      }
    >
      {state.is !== 'ended' && <p>{action === 'replay' ? t.deadLetters.replayText : t.deadLetters.discardText}</p>}
      {state.is === 'looking' && <Loading rows={4} />}
      {state.is === 'failed' && <Failure error={state.error} onRetry={() => void look()} />}
      {state.is === 'asked' && (
        <>
          {state.error && (
            <Note tone="bad">
              <ProblemText error={state.error} isAction />
            </Note>
          )}
          <Preview preview={state.preview} />
          {mustType && count > 0 && (
            <TextField label={t.sale.confirmName(String(count))} value={typed} onInput={setTyped} />
          )}
        </>
      )}
      {state.is === 'running' && (
        <Progress label={title} progress={state.progress} most={Math.min(state.preview.matching, state.preview.most)} />
      )}
      {state.is === 'ended' && <Result {...state.end} />}
    </Dialog>
  );
}

function Preview({ preview: { matching, most, first } }: { readonly preview: BulkPreview }) {
  const { t, f } = useWords();
  if (matching === 0) return <Note tone="info">{t.deadLetters.nothing}</Note>;
  return (
    <>
      <p>
        <b>{t.deadLetters.matching(f.number(matching))}</b> {matching > most && t.deadLetters.atMost(f.number(most))}
      </p>
      <ul class="preview">
        {first.map(({ deadLetterId, reason, saleId, detail }) => (
          <li key={deadLetterId}>
            <code>{deadLetterId}</code> {t.deadLetters.reasons[reason]} {saleId !== null && <code>{saleId}</code>}{' '}
            <span class="cut faint" lang="en">
              {detail}
            </span>
          </li>
        ))}
      </ul>
      {matching > first.length && <p class="hint">{t.deadLetters.andMore(f.number(matching - first.length))}</p>}
    </>
  );
}

/** How often the progress of a run is announced to a screen reader. */
const TOLD_TIMES = 10;

function Progress({
  label,
  progress,
  most,
}: {
  readonly label: string;
  readonly progress: BulkProgress | null;
  readonly most: number;
}) {
  const { t, f } = useWords();
  const [handled, of] = [progress?.handled ?? 0, progress?.of ?? most];
  const told = Math.floor((Math.floor((handled / Math.max(1, of)) * TOLD_TIMES) / TOLD_TIMES) * of);
  return (
    <div>
      <progress max={of} value={handled} aria-label={label} />
      <p class="number" aria-hidden="true">
        {t.deadLetters.progress(f.number(handled), f.number(of))}
      </p>
      <p class="hidden" role="status">
        {t.deadLetters.progress(f.number(told), f.number(of))}
      </p>
    </div>
  );
}

function Result({ done, failed, left, stopped, failures }: Omit<BulkEnd, 'stopped'> & { readonly stopped: Stopped }) {
  const { t, f } = useWords();
  return (
    <div role="status">
      <Note tone={failed > 0 || stopped !== null ? 'warn' : 'ok'}>
        {t.deadLetters.result(f.number(done), f.number(failed))} {left > 0 && t.deadLetters.left(f.number(left))}
        {stopped !== null && <p>{t.deadLetters.stopped[stopped]}</p>}
      </Note>
      {failures.length > 0 && (
        <>
          <h3>{t.deadLetters.failures}</h3>
          <ul class="preview">
            {failures.map(({ id, why }) => (
              <li key={id}>
                <code>{id}</code> <span lang="en">{why}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
