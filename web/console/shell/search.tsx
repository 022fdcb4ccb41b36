import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { lookUpsOf, type LookUp } from '../logic/look-up.js';
import { queryOf } from '../logic/query.js';
import { pathOf } from '../logic/routes.js';
import { Icon } from '../parts/icons.js';
import { navigate, useWords } from './hooks.js';

function placeOf({ kind, text }: LookUp): string {
  switch (kind) {
    case 'purchase':
      return pathOf({ screen: 'purchases', id: text });
    case 'user':
      return pathOf({ screen: 'purchases', id: null }) + queryOf({ user: text });
    case 'sale':
      return pathOf({ screen: 'sale', saleId: text });
    case 'dead_letter':
      return pathOf({ screen: 'dead-letters', deadLetterId: text });
    case 'message':
      return pathOf({ screen: 'messages', tab: 'browse' }) + queryOf({ way: 'key', key: text });
  }
}

/** The search field in the head of every screen. The text may be an id of several kinds of things. */
export function Search({ focusOn }: { readonly focusOn: (focus: () => void) => void }) {
  const { t } = useWords();
  const [text, setText] = useState('');
  const [picked, setPicked] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const list = useId();
  useEffect(() => focusOn(() => field.current?.select()), []);
  const found = lookUpsOf(text);
  const shows = isOpen && found.length > 0;

  const go = (index: number): void => {
    const one = found[index];
    if (one === undefined) return;
    setOpen(false);
    setText('');
    field.current?.blur();
    navigate(placeOf(one));
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') {
      setOpen(false);
      field.current?.blur();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      go(picked);
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      setPicked((picked + step + found.length) % Math.max(1, found.length));
    }
  };

  return (
    <div class="search" role="search">
      <Icon name="search" />
      <input
        ref={field}
        type="text"
        role="combobox"
        aria-label={t.shell.search}
        aria-expanded={shows}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={shows ? `${list}-${picked}` : undefined}
        placeholder={t.shell.search}
        value={text}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setPicked(0);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={press}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul id={list} role="listbox" aria-label={t.shell.search} hidden={!shows}>
        {shows &&
          found.map(({ kind, text: id }, index) => (
            <li
              key={kind}
              id={`${list}-${index}`}
              role="option"
              aria-selected={index === picked}
              onPointerEnter={() => setPicked(index)}
              onPointerDown={(event) => {
                event.preventDefault(); // the field keeps the focus until the user leaves it
                go(index);
              }}
            >
              <span>{t.shell.searchKinds[kind]}</span>
              <code>{id}</code>
            </li>
          ))}
      </ul>
    </div>
  );
}
