import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { may } from '../logic/permissions.js';
import { pathOf } from '../logic/routes.js';
import { useApp, usePages, useWords } from '../shell/hooks.js';
import { Button, Facts, Id, Panel } from './basics.js';
import { Confirm } from './confirm.js';
import { Table, type Column } from './table.js';

interface Words {
  readonly title: string;
  readonly close: string;
  readonly closeTitle: string;
  readonly closeText: string;
  readonly closed: string;
}

interface ClosableProps<T> {
  /** A record is closed at `<path>/<id>/close`. */
  readonly path: string;
  /** The field of an answer that holds the records. */
  readonly rows: string;
  readonly idOf: (row: T) => string;
  /** The subject in the audit log, without the id. */
  readonly subject: string;
  readonly words: Words;
  readonly columns: readonly Column<T>[];
  readonly facts: (row: T) => readonly (readonly [name: string, value: ComponentChildren])[];
  /** Shown if nothing is open. Absent: nothing is shown. */
  readonly empty?: ComponentChildren;
}

const OPEN = { state: 'open' };

/** Shows records that are open until an operator closes them. */
export function Closable<T>({ path, rows, idOf, subject, words, columns, facts, empty }: ClosableProps<T>) {
  const { api, me } = useApp();
  const { t } = useWords();
  const pages = usePages<T>(path, OPEN, { rows, place: 'after' });
  const [picked, setPicked] = useState<T | null>(null);
  if (pages.rows.length === 0 && empty === undefined && picked === null) return null;
  const action: Column<T> = {
    name: t.common.action,
    width: '124px',
    phoneWidth: '112px',
    cell: (row) => <Button onClick={() => setPicked(row)}>{words.close}</Button>,
  };
  const close = async (row: T): Promise<string> => {
    await api.ask(`${path}/${idOf(row)}/close`, { method: 'POST' });
    return words.closed;
  };
  return (
    <Panel title={words.title} flush>
      <Table
        label={words.title}
        columns={may(me.role, 'admin') ? [...columns, action] : columns}
        {...pages.list}
        keyOf={idOf}
        empty={empty}
      />
      {picked !== null && (
        <Confirm
          title={words.closeTitle}
          text={words.closeText}
          verb={words.close}
          run={() => close(picked)}
          audit={{ subject: `${subject}:${idOf(picked)}` }}
          onClose={() => setPicked(null)}
          onDone={pages.reload}
        >
          <Facts facts={facts(picked)} />
        </Confirm>
      )}
    </Panel>
  );
}

export const OrderLink = ({ orderId }: { readonly orderId: string | null }) =>
  orderId === null ? <>–</> : <Id text={orderId} to={pathOf({ screen: 'purchases', id: orderId })} />;
