import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/api-error.js';
import type { Session } from '../api/session.js';
import type { Dictionary } from '../i18n/language.js';
import { Icon } from '../parts/icons.js';
import { Note } from '../parts/states.js';
import { useWords } from './hooks.js';

const COMMAND = 'npm run -s seckill -- token --user you --role operator --ttl-hours 1';

/** Asks for a token. @param onDone called after the token was accepted */
export function SignIn({ session, onDone }: { readonly session: Session; readonly onDone?: () => void }) {
  const { t } = useWords();
  const [token, setToken] = useState('');
  const [isShown, setShown] = useState(false);
  const [isWorking, setWorking] = useState(false);
  const [fault, setFault] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);

  const submit = async (): Promise<void> => {
    const pasted = token.trim().replace(/^Bearer\s+/i, '');
    if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(pasted)) return setFault(t.signIn.notToken);
    setWorking(true);
    setFault(null);
    try {
      await session.signIn(pasted);
      setToken('');
      onDone?.();
    } catch (error) {
      setFault(faultText(error, t));
      setWorking(false);
    }
  };

  return (
    <form
      class="sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <p>{t.signIn.intro}</p>
      <div class="field">
        <label for="token">{t.signIn.field}</label>
        <div class="with-button">
          <input
            id="token"
            ref={field}
            class="code"
            type={(isShown ? 'text' : 'password') as 'text'}
            value={token}
            autocomplete="off"
            spellcheck={false}
            aria-invalid={fault !== null}
            aria-describedby="token-kept"
            onInput={(event) => setToken(event.currentTarget.value)}
          />
          <button
            type="button"
            class="icon-button"
            aria-label={isShown ? t.signIn.hide : t.signIn.show}
            aria-pressed={isShown}
            onClick={() => setShown(!isShown)}
          >
            <Icon name="eye" />
          </button>
        </div>
      </div>
      {fault !== null && <Note tone="bad">{fault}</Note>}
      <button type="submit" class="button main wide" disabled={isWorking || token.trim() === ''}>
        {isWorking ? t.signIn.working : t.signIn.submit}
      </button>
      <p id="token-kept" class="hint">
        {t.signIn.kept}
      </p>
      <details>
        <summary>{t.signIn.where}</summary>
        <p class="hint">{t.signIn.whereText}</p>
        <code class="command">{COMMAND}</code>
      </details>
    </form>
  );
}

function faultText(error: unknown, t: Dictionary): string {
  if (!(error instanceof ApiError)) return t.signIn.failed(String(error));
  if (error.status === 401) return t.signIn.bad;
  if (error.code === 'role_needed') return t.signIn.noRole;
  return error.code === 'unreachable' ? t.signIn.unreachable : t.signIn.failed(error.message);
}
