import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { timeOf } from '../logic/query.js';
import { useWords } from '../shell/hooks.js';
import { Button } from './basics.js';

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
  readonly type?: 'text' | 'number' | 'datetime-local' | 'search';
  readonly placeholder?: string | undefined;
  readonly disabled?: boolean;
  readonly isCode?: boolean;
}

export function TextField({
  label,
  value,
  onInput,
  hint,
  error,
  type = 'text',
  placeholder,
  disabled,
  isCode,
}: FieldProps) {
  const id = useId();
  const under = error ?? hint;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type={type as 'text'}
        value={value}
        class={isCode ? 'code' : undefined}
        placeholder={placeholder}
        disabled={disabled}
        step={type === 'number' ? 'any' : undefined}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={error !== undefined}
        aria-describedby={under === undefined ? undefined : `${id}-under`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {under !== undefined && (
        <p id={`${id}-under`} class={error === undefined ? 'field-hint' : 'field-error'}>
          {under}
        </p>
      )}
    </div>
  );
}

export function TextArea({
  label,
  value,
  onInput,
  hint,
  error,
  rows = 6,
  disabled,
}: Omit<FieldProps, 'type' | 'isCode' | 'placeholder'> & { readonly rows?: number }) {
  const id = useId();
  const under = error ?? hint;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        class="code"
        rows={rows}
        value={value}
        disabled={disabled}
        spellcheck={false}
        aria-invalid={error !== undefined}
        aria-describedby={under === undefined ? undefined : `${id}-under`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {under !== undefined && (
        <p id={`${id}-under`} class={error === undefined ? 'field-hint' : 'field-error'}>
          {under}
        </p>
      )}
    </div>
  );
}

export function Choice<V extends string>({
  label,
  value,
  options,
  onPick,
  hint,
  disabled,
}: {
  readonly label: string;
  readonly value: V;
  readonly options: readonly (readonly [V, string])[];
  readonly onPick: (value: V) => void;
  readonly hint?: string;
  readonly disabled?: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        disabled={disabled}
        title={hint}
        onChange={(event) => onPick(event.currentTarget.value as V)}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Check({
  label,
  checked,
  onChange,
  hint,
  disabled,
}: {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly hint?: string;
  readonly disabled?: boolean;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>
        {label}
        {hint && <small>{hint}</small>}
      </span>
    </label>
  );
}

/** A few words, all visible, from which the user picks. */
export function Segments<V extends string>({
  label,
  value,
  options,
  onPick,
}: {
  readonly label: string;
  readonly value: V;
  readonly options: readonly (readonly [V, string])[];
  readonly onPick: (value: V) => void;
}) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([option, text]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onPick(option)}>
          {text}
        </button>
      ))}
    </div>
  );
}

export type FilterField =
  | { readonly name: string; readonly label: string; readonly kind: 'text'; readonly hint?: string }
  | { readonly name: string; readonly label: string; readonly kind: 'time' }
  | {
      readonly name: string;
      readonly label: string;
      readonly kind: 'choice';
      readonly options: readonly (readonly [string, string])[];
    };

/** A field with a choice of `options`, each shown by its word. */
export const choice = <O extends string>(
  name: string,
  label: string,
  options: readonly O[],
  words: Readonly<Record<O, string>>,
): FilterField => ({ name, label, kind: 'choice', options: options.map((option) => [option, words[option]]) });

/** Fields of a filter that are shown at once. More fields appear on request, or when they are set. */
const FIELDS_FIRST = 5;

/**
 * The filter of a list. A choice applies at once, and a text when it is submitted. Times can be typed in everyday form.
 */
export function FilterBar({
  fields,
  values,
  onChange,
  children,
}: {
  readonly fields: readonly FilterField[];
  readonly values: Readonly<Record<string, string>>;
  readonly onChange: (values: Record<string, string>) => void;
  readonly children?: ComponentChildren;
}) {
  const { t } = useWords();
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const [isWhole, setWhole] = useState(false);
  const [wrong, setWrong] = useState<ReadonlySet<string>>(new Set());
  const valueOf = (name: string): string => typed[name] ?? values[name] ?? '';
  const send = (): void => {
    const bad = new Set<string>();
    const changes: Record<string, string> = {};
    for (const { name, kind } of fields) {
      const text = typed[name];
      if (text === undefined) continue;
      const read = kind === 'time' ? timeOf(text, Date.now()) : text.trim();
      if (read === null) bad.add(name);
      else changes[name] = read;
    }
    setWrong(bad);
    if (bad.size > 0) return;
    setTyped({});
    onChange(changes);
  };
  const clear = (): void => {
    setTyped({});
    setWrong(new Set());
    onChange(Object.fromEntries(fields.map(({ name }) => [name, ''])));
  };
  const isSet = fields.some(({ name }) => valueOf(name) !== '');
  const shown = fields.filter(({ name }, index) => isWhole || index < FIELDS_FIRST || valueOf(name) !== '');
  const hasText = shown.some(({ kind }) => kind !== 'choice');
  return (
    <form
      class="filter"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {shown.map((field) =>
        field.kind === 'choice' ? (
          <Choice
            key={field.name}
            label={field.label}
            value={values[field.name] ?? ''}
            options={[['', t.common.any], ...field.options]}
            onPick={(value) => onChange({ [field.name]: value })}
          />
        ) : (
          <TextField
            key={field.name}
            label={field.label}
            value={valueOf(field.name)}
            onInput={(text) => setTyped({ ...typed, [field.name]: text })}
            error={wrong.has(field.name) ? t.common.badTime : undefined}
            placeholder={field.kind === 'time' ? '2h' : field.hint}
          />
        ),
      )}
      <div class="filter-buttons">
        {hasText && (
          <button type="submit" class="button plain">
            {t.common.apply}
          </button>
        )}
        {shown.length < fields.length && (
          <Button kind="quiet" onClick={() => setWhole(true)}>
            {t.common.moreFilters}
          </Button>
        )}
        {isSet && (
          <Button kind="quiet" onClick={clear}>
            {t.common.clear}
          </Button>
        )}
      </div>
      {children}
    </form>
  );
}
