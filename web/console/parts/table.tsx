import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { rowWindow } from '../logic/window.js';
import { useWords } from '../shell/hooks.js';
import { Button } from './basics.js';
import { Icon } from './icons.js';
import { Empty, Failure, Loading } from './states.js';
import type { ApiError } from '../api/api-error.js';

export interface Column<T> {
  readonly name: string;
  readonly cell: (row: T) => ComponentChildren;
  /** Aligns figures to the right, so that their digits line up. */
  readonly isNumber?: boolean;
  /** Hides the column where space is short. The opened row shows its value. */
  readonly hides?: 'phone' | 'narrow';
  /** Share of the width, or a number of px. Absent: a share of the rest. */
  readonly width?: string;
  /** Width on a phone. Absent: same as elsewhere. */
  readonly phoneWidth?: string;
  /** Absent if the column cannot be sorted. */
  readonly sort?: (row: T) => number | string | null;
  readonly hint?: string;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Opens the details of a row. */
  readonly onOpen?: (row: T) => void;
  readonly nameOf?: (row: T) => string;
  readonly isOpen?: (row: T) => boolean;
  readonly selected?: ReadonlySet<string>;
  readonly onSelect?: (keys: ReadonlySet<string>) => void;
  readonly empty?: ComponentChildren;
  readonly error?: ApiError | null;
  readonly isLoading?: boolean;
  readonly onRetry?: () => void;
  readonly hasMore?: boolean;
  readonly onMore?: () => void;
}

const ROW_PX = 37;
/** Longer lists scroll in a separate box that draws only the visible rows. */
const WHOLE_MAX = 60;

/** A list of rows of any length. Arrow keys, j and k go from row to row, Enter opens a row. */
export function Table<T>(props: TableProps<T>) {
  const {
    label,
    columns,
    rows,
    keyOf,
    onOpen,
    nameOf,
    isOpen,
    selected,
    onSelect,
    empty,
    error,
    isLoading,
    onRetry,
    hasMore,
    onMore,
  } = props;
  const { t, f } = useWords();
  const [order, setOrder] = useState<{ column: number; down: boolean } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ scrollPx: 0, heightPx: 800 });
  const isLong = rows.length > WHOLE_MAX;

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || !isLong) return undefined;
    const look = (): void => setView({ scrollPx: element.scrollTop, heightPx: element.clientHeight });
    look();
    element.addEventListener('scroll', look, { passive: true });
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    return () => {
      element.removeEventListener('scroll', look);
      sizes.disconnect();
    };
  }, [isLong]);
  useEffect(() => box.current?.scrollTo(0, 0), [order]);

  if (rows.length === 0) {
    if (error) return <Failure error={error} {...(onRetry && { onRetry })} />;
    if (isLoading) return <Loading />;
    return <>{empty ?? <Empty title={t.states.emptyTitle} />}</>;
  }

  const sorted = order === null ? rows : sortedRows(rows, columns[order.column]?.sort, order.down);
  const shown = isLong
    ? rowWindow(sorted.length, ROW_PX, view.scrollPx, view.heightPx)
    : { from: 0, to: sorted.length, abovePx: 0, belowPx: 0 };
  const all = selected && rows.length > 0 && rows.every((row) => selected.has(keyOf(row)));
  const toggle = (key: string): void => {
    const next = new Set(selected);
    if (!next.delete(key)) next.add(key);
    onSelect?.(next);
  };
  const move = (event: KeyboardEvent, index: number): void => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step === undefined || event.target !== event.currentTarget) return;
    event.preventDefault();
    const element = box.current;
    // upwards, because the head would cover it
    if (element !== null && isLong) element.scrollTop = Math.min(element.scrollTop, (index + step) * ROW_PX);
    element?.querySelector<HTMLElement>(`tr[data-row="${index + step}"]`)?.focus();
  };

  return (
    <>
      <div
        class={isLong ? 'table-box long' : 'table-box'}
        ref={box}
        tabIndex={0}
        role="region"
        aria-label={t.common.table(label)}
      >
        <table aria-rowcount={sorted.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              {onSelect && (
                <th class="pick">
                  <input
                    type="checkbox"
                    aria-label={t.common.selectAll}
                    checked={all === true}
                    onChange={() => onSelect(all ? new Set() : new Set(rows.map(keyOf)))}
                  />
                </th>
              )}
              {columns.map(({ name, isNumber, hides, width, phoneWidth, sort, hint }, index) => {
                const isSorted = order?.column === index;
                return (
                  <th
                    key={name}
                    scope="col"
                    class={classes(isNumber, hides)}
                    title={hint}
                    style={{ '--width': width ?? 'auto', '--phone-width': phoneWidth ?? width ?? 'auto' }}
                    aria-sort={isSorted ? (order.down ? 'descending' : 'ascending') : undefined}
                  >
                    {sort === undefined ? (
                      name
                    ) : (
                      <button
                        type="button"
                        class="sort"
                        title={t.common.sortBy(name)}
                        onClick={() => setOrder({ column: index, down: isSorted ? !order.down : isNumber === true })}
                      >
                        {name}
                        {isSorted && <span class={order.down ? 'arrow down' : 'arrow'} aria-hidden="true" />}
                      </button>
                    )}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {shown.abovePx > 0 && <Gap px={shown.abovePx} />}
            {sorted.slice(shown.from, shown.to).map((row, place) => {
              const index = shown.from + place;
              const key = keyOf(row);
              return (
                <tr
                  key={key}
                  data-row={index}
                  aria-rowindex={index + 2}
                  class={isOpen?.(row) ? 'open' : undefined}
                  tabIndex={onOpen ? 0 : undefined}
                  onClick={onOpen && ((event) => isPlain(event) && onOpen(row))}
                  onKeyDown={(event) => {
                    if (event.key === 'Enter' && event.target === event.currentTarget) onOpen?.(row);
                    else move(event, index);
                  }}
                >
                  {onSelect && (
                    <td class="pick">
                      <input
                        type="checkbox"
                        aria-label={t.common.select(nameOf?.(row) ?? key)}
                        checked={selected?.has(key) === true}
                        onChange={() => toggle(key)}
                      />
                    </td>
                  )}
                  {columns.map(({ name, cell, isNumber, hides }) => (
                    <td key={name} class={classes(isNumber, hides)}>
                      {cell(row)}
                    </td>
                  ))}
                </tr>
              );
            })}
            {shown.belowPx > 0 && <Gap px={shown.belowPx} />}
          </tbody>
        </table>
      </div>
      {(hasMore === true || isLong || error) && (
        <footer class="table-foot">
          <span>{t.common.rows(f.number(rows.length))}</span>
          {error && (
            <span class="stale">
              <Icon name="warn" /> {error.message}
            </span>
          )}
          {hasMore && onMore && (
            <Button onClick={onMore} disabled={isLoading === true}>
              {t.common.more}
            </Button>
          )}
        </footer>
      )}
    </>
  );
}

/** Has only one cell: under a cell that spans hidden columns, these columns would reappear, empty. */
const Gap = ({ px }: { readonly px: number }) => (
  <tr class="gap" aria-hidden="true">
    <td style={{ height: `${px}px` }} />
  </tr>
);

const classes = (isNumber?: boolean, hides?: string): string | undefined =>
  [isNumber ? 'figure-cell' : '', hides ? `hides-${hides}` : ''].join(' ').trim() || undefined;

/**
 * True for a click that may open the row. A click on a link, a button or a field inside a row belongs to that element,
 * and a user who selects text does not open the row.
 */
const isPlain = (event: MouseEvent): boolean =>
  (event.target as Element).closest('a, button, input, select, label') === null && getSelection()?.toString() === '';

function sortedRows<T>(rows: readonly T[], sort: Column<T>['sort'], down: boolean): readonly T[] {
  if (sort === undefined) return rows;
  const sign = down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [sort(one), sort(other)];
    if (a === b) return 0;
    if (a === null) return 1; // unknown values come last
    if (b === null) return -1;
    return a < b ? -sign : sign;
  });
}
