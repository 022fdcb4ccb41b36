import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
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
  /** A sentence about what the action does. */
  readonly text: string;
  /** The current values, or the result of a dry run. */
  readonly children?: ComponentChildren;
  readonly verb: string;
  readonly isDangerous?: boolean;
  /** Text that must be typed first, for an action that cannot be undone. */
  readonly typed?: string;
  readonly canRun?: boolean;
  /** Runs the action. @returns the result to show @throws ApiError */
  readonly run: () => Promise<ComponentChildren>;
  /** Subject of the action in the audit log. */
  readonly audit: { readonly subject: string };
  readonly onClose: () => void;
  readonly onDone?: () => void;
}

/**
 * Confirms an action. Every action uses this dialog: it says what will happen, asks, runs the action, and shows the
 * result and where it is logged.
 */
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
  const isActing = useRef(false); // a second click may come before the button is disabled
  const act = async (): Promise<void> => {
    if (isActing.current) return;
    isActing.current = true;
    setState({ is: 'running' });
    try {
      const result = await run();
      setState({ is: 'done', result });
      onDone?.();
    } catch (error) {
      isActing.current = false;
      setState({ is: 'asked', error: apiErrorOf(error) });
      if (!(error instanceof ApiError)) throw error; // a bug: the browser logs where
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
