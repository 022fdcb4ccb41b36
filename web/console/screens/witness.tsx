import { useState } from 'preact/hooks';
import type { WitnessFinding } from '../api/types.js';
import { may } from '../logic/permissions.js';
import { pathOf } from '../logic/routes.js';
import { Ago, Button, Cut, Facts, Id, Panel, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Empty } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { useApp, usePages, useWords } from '../shell/hooks.js';

const OPEN = { state: 'open' };

/** Shows open findings of the witness: changes that no program makes. Shows nothing if there are none. */
export function WitnessFindings() {
  const { api, me } = useApp();
  const { t } = useWords();
  const words = t.reconcile.witness;
  const findings = usePages<WitnessFinding, { findings: readonly WitnessFinding[]; next: string | null }>(
    '/admin/v1/witness/findings',
    OPEN,
    { place: 'after', read: (page) => ({ rows: page.findings, next: page.next }) },
  );
  const [picked, setPicked] = useState<WitnessFinding | null>(null);
  if (findings.rows.length === 0) return null;
  const orderOf = ({ orderId }: WitnessFinding) =>
    orderId === null ? '–' : <Id text={orderId} to={pathOf({ screen: 'purchases', id: orderId })} />;
  const columns: readonly Column<WitnessFinding>[] = [
    { name: words.kind, width: '200px', phoneWidth: '140px', cell: ({ kind }) => t.reconcile.witness.kinds[kind] },
    { name: t.common.order, hides: 'phone', width: '170px', cell: orderOf },
    { name: words.detail, hides: 'phone', cell: ({ detail }) => <Cut text={detail} lang="en" /> },
    { name: words.committed, width: '100px', cell: ({ committedAt }) => <Ago at={committedAt} /> },
    ...(may(me.role, 'admin')
      ? [
          {
            name: t.common.action,
            width: '124px',
            phoneWidth: '112px',
            cell: (one: WitnessFinding) => <Button onClick={() => setPicked(one)}>{words.close}</Button>,
          },
        ]
      : []),
  ];
  const close = async ({ findingId }: WitnessFinding): Promise<string> => {
    await api.ask(`/admin/v1/witness/findings/${findingId}/close`, { method: 'POST' });
    return words.closed;
  };
  return (
    <Panel title={words.title} flush>
      <Table
        label={words.title}
        columns={columns}
        rows={findings.rows}
        keyOf={({ findingId }) => findingId}
        empty={<Empty title={words.title} text="" />}
        error={findings.error}
        isLoading={findings.isLoading}
        onRetry={findings.reload}
        hasMore={findings.hasMore}
        onMore={findings.more}
      />
      {picked && (
        <Confirm
          title={words.closeTitle}
          text={words.closeText}
          verb={words.close}
          run={() => close(picked)}
          audit={{ subject: `witness_finding:${picked.findingId}` }}
          onClose={() => setPicked(null)}
          onDone={findings.reload}
        >
          <Facts
            facts={[
              [words.kind, t.reconcile.witness.kinds[picked.kind]],
              [t.common.order, orderOf(picked)],
              [words.detail, <span lang="en">{picked.detail}</span>],
              [words.committed, <Time at={picked.committedAt} />],
            ]}
          />
        </Confirm>
      )}
    </Panel>
  );
}
