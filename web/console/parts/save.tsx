import { useState } from 'preact/hooks';
import { ApiError } from '../api/api-error.js';
import type { Query } from '../api/client.js';
import { useApp, useWords } from '../shell/hooks.js';
import { Button } from './basics.js';
import { ProblemText } from './states.js';

/**
 * Saves an answer of the API as a file. The request carries the token in its header, so no address contains the token.
 */
export function SaveButton({
  path,
  query,
  name,
  text,
  hint,
}: {
  readonly path: string;
  readonly query: Query;
  readonly name: string;
  readonly text: string;
  readonly hint?: string;
}) {
  const { api } = useApp();
  const { t } = useWords();
  const [state, setState] = useState<'idle' | 'busy' | ApiError>('idle');
  const save = async (): Promise<void> => {
    setState('busy');
    try {
      saveAs(await api.file(path, { query }), name);
      setState('idle');
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setState(error);
    }
  };
  return (
    <>
      {typeof state === 'object' && (
        <span class="stale" role="alert">
          <ProblemText error={state} />
        </span>
      )}
      <Button icon="download" onClick={() => void save()} disabled={state === 'busy'} {...(hint && { title: hint })}>
        {state === 'busy' ? t.common.loading : text}
      </Button>
    </>
  );
}

function saveAs(file: Blob, name: string): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
