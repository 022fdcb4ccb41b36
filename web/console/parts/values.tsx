import { useState } from 'preact/hooks';
import type { Json } from '../api/types.js';
import { changesOf, listChange, type Change } from '../logic/diff.js';
import { useWords } from '../shell/hooks.js';
import { Button } from './basics.js';
import { Empty } from './states.js';

/** More of a text is shown only on request, because a body may have megabytes. */
const SHOWN_MAX = 20_000;

/** Shows a text as it is, or JSON with line breaks. */
export function Code({ text, label }: { readonly text: string; readonly label: string }) {
  const { t, f } = useWords();
  const [all, setAll] = useState(false);
  const isCut = !all && text.length > SHOWN_MAX;
  return (
    <div class="code-box">
      <pre tabIndex={0} role="region" aria-label={label}>
        {isCut ? `${text.slice(0, SHOWN_MAX)}…` : text}
      </pre>
      {isCut && (
        <Button onClick={() => setAll(true)}>{t.common.showAll(t.common.characters(f.number(text.length)))}</Button>
      )}
    </div>
  );
}

/** Breaks the lines of JSON. Returns any other text as it is. */
export function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Shows the differences between two values, with a line for each. */
export function Diff({
  before,
  after,
  names,
  nameOf,
}: {
  readonly before: Json;
  readonly after: Json;
  readonly names?: readonly [string, string];
  /** Names a value for people. Absent: its path. */
  readonly nameOf?: (path: string) => string;
}) {
  const { t } = useWords();
  const changes = changesOf(before ?? {}, after ?? {});
  const [from, to] = names ?? [t.rules.before, t.rules.after];
  if (changes.length === 0) return <Empty title={t.rules.noChange} />;
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={`${from} / ${to}`}>
      <table class="diff">
        <thead>
          <tr>
            <th scope="col" />
            <th scope="col">{from}</th>
            <th scope="col">{to}</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => (
            <tr key={change.path}>
              <th scope="row">
                {nameOf ? (
                  <span title={change.path}>{nameOf(change.path)}</span>
                ) : (
                  <code>{change.path === '' ? '·' : change.path}</code>
                )}
              </th>
              <DiffCells {...change} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function DiffCells({ before, after }: Change) {
  const { t, f } = useWords();
  if (Array.isArray(before) && Array.isArray(after)) {
    const { added, removed } = listChange(before, after);
    return (
      <>
        <td class="was">
          {t.rules.entries(f.number(before.length))}{' '}
          {removed.length > 0 && `(${t.rules.removed(f.number(removed.length))})`}
          <Entries values={removed} />
        </td>
        <td class="is">
          {t.rules.entries(f.number(after.length))} {added.length > 0 && `(${t.rules.added(f.number(added.length))})`}
          <Entries values={added} />
        </td>
      </>
    );
  }
  return (
    <>
      <td class="was">{before === undefined ? <i>{t.rules.notThere}</i> : <code>{JSON.stringify(before)}</code>}</td>
      <td class="is">{after === undefined ? <i>{t.rules.notThere}</i> : <code>{JSON.stringify(after)}</code>}</td>
    </>
  );
}

const ENTRIES_MAX = 8;

function Entries({ values }: { readonly values: readonly Json[] }) {
  const { t, f } = useWords();
  return (
    <ul class="entries">
      {values.slice(0, ENTRIES_MAX).map((value, index) => (
        <li key={index}>
          <code>{typeof value === 'string' ? value : JSON.stringify(value)}</code>
        </li>
      ))}
      {values.length > ENTRIES_MAX && <li>{t.deadLetters.andMore(f.number(values.length - ENTRIES_MAX))}</li>}
    </ul>
  );
}
