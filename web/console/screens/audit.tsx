import { useState } from 'preact/hooks';
import type { AuditEntry, Json } from '../api/types.js';
import { pathOf } from '../logic/routes.js';
import { Cut, Facts, Id, Panel, ScreenHead, Time } from '../parts/basics.js';
import { Dialog } from '../parts/dialog.js';
import { FilterBar } from '../parts/fields.js';
import { Empty, Freshness } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { Diff } from '../parts/values.js';
import { useFilter, usePages, useWords } from '../shell/hooks.js';

export function AuditScreen() {
  const { t } = useWords();
  const [filter, setFilter] = useFilter(['subject', 'actor', 'action', 'since'] as const);
  const entries = usePages<AuditEntry>('/admin/v1/audit', filter, { rows: 'entries', place: 'before' });
  const [open, setOpen] = useState<AuditEntry | null>(null);
  const columns: readonly Column<AuditEntry>[] = [
    {
      name: t.common.at,
      width: '150px',
      phoneWidth: '116px',
      cell: ({ at }) => <Time at={at} />,
      sort: ({ at }) => at,
    },
    {
      name: t.common.action,
      width: '210px',
      phoneWidth: 'auto',
      cell: ({ action }) => <code class="strong">{action}</code>,
      sort: ({ action }) => action,
    },
    {
      name: t.common.subject,
      width: '24%',
      phoneWidth: '110px',
      cell: ({ subject }) => <Subject subject={subject} />,
      sort: ({ subject }) => subject,
    },
    {
      name: t.common.actor,
      hides: 'phone',
      cell: ({ actor }) => <Cut text={actor} />,
      sort: ({ actor }) => actor,
    },
    {
      name: t.audit.after,
      hides: 'narrow',
      width: '30%',
      cell: ({ after }) => <Cut text={after === null ? t.audit.nothing : JSON.stringify(after)} as="code" faint />,
    },
  ];
  return (
    <>
      <ScreenHead title={t.audit.title} />
      <Panel flush>
        <FilterBar
          fields={[
            { name: 'subject', label: t.common.subject, kind: 'text', hint: t.audit.subjectHint },
            { name: 'action', label: t.common.action, kind: 'text', hint: t.audit.actionHint },
            { name: 'actor', label: t.common.actor, kind: 'text' },
            { name: 'since', label: t.common.since, kind: 'time' },
          ]}
          values={filter}
          onChange={setFilter}
        >
          <Freshness {...entries} />
        </FilterBar>
        <Table
          label={t.audit.title}
          columns={columns}
          {...entries.list}
          keyOf={({ auditId }) => auditId}
          nameOf={({ auditId }) => t.audit.entry(auditId)}
          onOpen={setOpen}
          isOpen={({ auditId }) => auditId === open?.auditId}
          empty={<Empty title={t.audit.empty} text={t.audit.emptyText} icon="audit" />}
        />
      </Panel>
      {open && (
        <Dialog title={t.audit.entry(open.auditId)} onClose={() => setOpen(null)} shape="side">
          <Facts
            facts={[
              [t.common.at, <Time at={open.at} ms />],
              [t.common.action, <code>{open.action}</code>],
              [t.common.subject, <Subject subject={open.subject} />],
              [t.common.actor, open.actor],
            ]}
          />
          <Diff before={open.before as Json} after={open.after as Json} names={[t.audit.before, t.audit.after]} />
        </Dialog>
      )}
    </>
  );
}

/** Shows the subject of a change, with a link if the console has a screen for it. */
function Subject({ subject }: { readonly subject: string }) {
  const [kind = '', id = ''] = subject.split(/:(.*)/s);
  const to =
    kind === 'sale'
      ? pathOf({ screen: 'sale', saleId: id })
      : kind === 'dead_letter'
        ? pathOf({ screen: 'dead-letters', deadLetterId: id })
        : kind === 'order' || kind === 'half_message'
          ? pathOf({ screen: 'purchases', id })
          : kind === 'rules'
            ? pathOf({ screen: 'rules', tab: 'versions' })
            : null;
  return <Id text={subject} {...(to !== null && { to })} />;
}
