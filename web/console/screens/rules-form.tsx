import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { FieldError, Json, JsonObject } from '../api/types.js';
import { isSame, valueAt } from '../logic/diff.js';
import {
  LAYERS,
  layerChanged,
  numberFault,
  ruleFault,
  ruleName,
  RULE_FIELDS,
  withRule,
  type RuleField,
} from '../logic/rule-fields.js';
import { Badge } from '../parts/basics.js';
import { Check, Choice, Segments, TextArea, TextField } from '../parts/fields.js';
import { useWords } from '../shell/hooks.js';

interface FormProps {
  /** The current rules. */
  readonly before: JsonObject;
  readonly rules: JsonObject;
  readonly errors: readonly FieldError[];
  readonly onChange: (rules: JsonObject) => void;
}

/** Shows the rules as a form, with a part for each layer. Pointing at a field shows its path in the document. */
export function RulesForm({ before, rules, errors, onChange }: FormProps) {
  const { t } = useWords();
  return (
    <div class="layers">
      {LAYERS.map((layer) => {
        const [modeField, ...fields] = RULE_FIELDS[layer];
        const mode = String(valueAt(rules, `${layer}.mode`)) as keyof typeof t.rules.modes;
        const isChanged = layerChanged(before, rules, layer);
        return (
          <section key={layer} class="panel layer">
            <header class="panel-head">
              <div>
                <h2>
                  {t.rules.layers[layer]} {isChanged && <Badge tone="info">{t.rules.after}</Badge>}
                </h2>
                <p class="hint">{t.rules.layerHints[layer]}</p>
              </div>
              <Segments
                label={`${t.rules.mode}: ${t.rules.layers[layer]}`}
                value={mode}
                options={(['off', 'dry_run', 'on'] as const).map((one) => [one, t.rules.modes[one]] as const)}
                onPick={(picked) => onChange(withRule(rules, modeField?.path ?? `${layer}.mode`, picked))}
              />
            </header>
            <details open={mode !== 'off' || isChanged}>
              <summary>{t.common.details}</summary>
              <div class="rule-fields">
                {fields.map((field) => (
                  <RuleInput
                    key={field.path}
                    field={field}
                    before={before}
                    rules={rules}
                    errors={errors}
                    onChange={onChange}
                  />
                ))}
              </div>
            </details>
          </section>
        );
      })}
    </div>
  );
}

interface InputProps extends FormProps {
  readonly field: RuleField;
}

function RuleInput(props: InputProps) {
  const { field, before, rules, errors, onChange } = props;
  const { t } = useWords();
  const value = valueAt(rules, field.path);
  const set = (next: Json): void => onChange(withRule(rules, field.path, next));
  const wrong = errors.find((one) => one.field === field.path || one.field.startsWith(`${field.path}.`));
  const error = wrong && ruleFault(wrong, t.rules).fault;
  const isChanged = !isSame(valueAt(before, field.path), value);
  const words: Readonly<Record<string, string>> = { ...t.rules.modes, ...t.rules.levels, ...t.rules.options };
  const label = ruleName(field.path, t.rules);
  switch (field.kind) {
    case 'choice':
      return (
        <Changed path={field.path} is={isChanged}>
          <Choice
            label={label}
            value={String(value)}
            options={field.options.map((one) => [one, words[one] ?? one] as const)}
            onPick={set}
          />
        </Changed>
      );
    case 'number':
      return (
        <Changed path={field.path} is={isChanged}>
          <NumberInput field={field} label={label} value={value} error={error} onInput={set} />
        </Changed>
      );
    case 'lines':
      return (
        <Changed path={field.path} is={isChanged} wide>
          <LinesInput label={label} value={value} error={error} onInput={set} />
        </Changed>
      );
    case 'some':
      return (
        <Changed path={field.path} is={isChanged}>
          <fieldset class="field">
            <legend>{label}</legend>
            {field.options.map((one) => {
              const list = Array.isArray(value) ? value : [];
              return (
                <Check
                  key={one}
                  label={String(one)}
                  checked={list.includes(one)}
                  onChange={(on) => set(on ? [...list, one].sort() : list.filter((other) => other !== one))}
                />
              );
            })}
          </fieldset>
        </Changed>
      );
    case 'sales':
      return (
        <Changed path={field.path} is={isChanged}>
          <Choice
            label={label}
            value={value === 'all' ? 'all' : 'some'}
            options={[
              ['all', t.rules.everySale],
              ['some', t.rules.someSales],
            ]}
            onPick={(picked) => set(picked === 'all' ? 'all' : [])}
          />
          {value !== 'all' && <LinesInput label={t.rules.someSales} value={value} error={error} onInput={set} />}
        </Changed>
      );
    case 'optional':
      return (
        <Changed path={field.path} is={isChanged}>
          <fieldset class="field group">
            <legend>{label}</legend>
            <Check
              label={t.rules.noLimit}
              checked={value === null}
              onChange={(isUnlimited) => set(isUnlimited ? null : field.initial)}
            />
            {value !== null && field.fields.map((one) => <RuleInput key={one.path} {...props} field={one} />)}
          </fieldset>
        </Changed>
      );
  }
}

const Changed = ({
  path,
  is,
  wide,
  children,
}: {
  readonly path: string;
  readonly is: boolean;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}) => (
  <div class={`rule ${is ? 'changed' : ''} ${wide ? 'wide' : ''}`} title={path}>
    {children}
  </div>
);

/** Edits a number. Text that is not a number stays in the field and does not reach the draft. */
function NumberInput({
  field,
  label,
  value,
  error,
  onInput,
}: {
  readonly field: Extract<RuleField, { kind: 'number' }>;
  readonly label: string;
  readonly value: Json | undefined;
  readonly error: string | undefined;
  readonly onInput: (value: Json) => void;
}) {
  const { f } = useWords();
  const written = value === null || value === undefined ? '' : String(value);
  const [typed, setTyped] = useState(written);
  useEffect(() => {
    if (Number(typed) !== value || typed === '') setTyped(written);
  }, [written]);
  const fault = typed === '' ? null : numberFault(field, Number(typed));
  const input = (text: string): void => {
    setTyped(text);
    if (text.trim() === '') {
      if (field.nullable) onInput(null);
      return;
    }
    if (Number.isFinite(Number(text))) onInput(Number(text));
  };
  const isTime = field.path.endsWith('Ms');
  const hint = isTime && typeof value === 'number' ? `= ${f.duration(value)}` : undefined;
  return (
    <TextField
      label={label}
      type="number"
      value={typed}
      onInput={input}
      hint={hint}
      error={error ?? (fault === null ? undefined : `${f.tenths(fault.min)} – ${f.tenths(fault.max)}`)}
    />
  );
}

function LinesInput({
  label,
  value,
  error,
  onInput,
}: {
  readonly label: string;
  readonly value: Json | undefined;
  readonly error: string | undefined;
  readonly onInput: (value: Json) => void;
}) {
  const { t, f } = useWords();
  const list = Array.isArray(value) ? value.map(String) : [];
  const [typed, setTyped] = useState(list.join('\n'));
  const read = linesOf(typed);
  useEffect(() => {
    if (!isSame(read, list)) setTyped(list.join('\n'));
  }, [value]);
  return (
    <TextArea
      label={label}
      rows={typed === '' ? 1 : 3}
      value={typed}
      onInput={(text) => {
        setTyped(text);
        onInput(linesOf(text));
      }}
      hint={`${t.rules.onePerLine} · ${t.rules.entries(f.number(list.length))}`}
      error={error}
    />
  );
}

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
