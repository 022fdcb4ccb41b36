import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ApiError, apiErrorOf } from '../api/api-error.js';
import { pathOf } from '../logic/routes.js';
import { queryOf } from '../logic/query.js';
import { useWords } from '../shell/hooks.js';
import { Button, Link } from './basics.js';
import { Dialog } from './dialog.js';
import { TextField } from './fields.js';
import { Note, ProblemText } from './states.js';

interface ConfirmProps {
  readonly title: string;
  /** What it does, in a sentence. */
  readonly text: string;
  /** The present values, or what was found by a dry run. */
  readonly children?: ComponentChildren;
  readonly verb: string;
  readonly isDangerous?: boolean;
  /** To be typed first, for what cannot be undone. */
  readonly typed?: string;
  readonly canRun?: boolean;
  /** Does it. @returns what to show of the result @throws ApiError */
  readonly run: () => Promise<ComponentChildren>;
  /** What the audit log has the action under. */
  readonly audit: { readonly subject: string };
  readonly onClose: () => void;
  readonly onDone?: () => void;
}

/** Every action passes here: it says what it will do, asks, does it, and shows what came of it and where that is written down. */
export function Confirm({
  title,
  text,
  children,
  verb,
  isDangerous,
  typed,
  canRun = true,
  run,
  audit,
  onClose,
  onDone,
}: ConfirmProps) {
  const { t } = useWords();
  const [name, setName] = useState('');
  const [state, setState] = useState<{
    is: 'asked' | 'running' | 'done';
    result?: ComponentChildren;
    error?: ApiError;
  }>({ is: 'asked' });
  const act = async (): Promise<void> => {
    setState({ is: 'running' });
    try {
      const result = await run();
      setState({ is: 'done', result });
      onDone?.();
    } catch (error) {
      setState({ is: 'asked', error: apiErrorOf(error) });
      if (!(error instanceof ApiError)) throw error; // a bug: the browser writes down where
    }
  };
  const isRunning = state.is === 'running';
  const isReady = canRun && state.is === 'asked' && (typed === undefined || name.trim() === typed);
  return (
    <Dialog
      title={title}
      onClose={onClose}
      isFinal={isRunning}
      foot={
        state.is === 'done' ? (
          <>
            <Link to={pathOf({ screen: 'audit' }) + queryOf(audit)}>{t.common.seeAudit}</Link>
            <Button kind="main" onClick={onClose}>
              {t.common.close}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={onClose} disabled={isRunning}>
              {t.common.cancel}
            </Button>
            <Button kind={isDangerous ? 'danger' : 'main'} onClick={() => void act()} disabled={!isReady}>
              {verb}
            </Button>
          </>
        )
      }
    >
      {state.is !== 'done' && <p>{text}</p>}
      {state.is !== 'done' && children}
      {state.is !== 'done' && typed !== undefined && (
        <TextField label={t.sale.confirmName(typed)} value={name} onInput={setName} />
      )}
      {state.error && (
        <Note tone="bad">
          <ProblemText error={state.error} isAction />
          {state.error.errors.length > 0 && (
            <ul lang="en">
              {state.error.errors.map(({ field, message }) => (
                <li key={field + message}>{message}</li>
              ))}
            </ul>
          )}
        </Note>
      )}
      <div role="status">
        {isRunning && <p class="hint">{t.common.working}</p>}
        {state.is === 'done' &&
          (typeof state.result === 'string' ? <Note tone="ok">{state.result}</Note> : state.result)}
      </div>
    </Dialog>
  );
}
