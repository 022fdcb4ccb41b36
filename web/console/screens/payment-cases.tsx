import { useState } from 'preact/hooks';
import type { PaymentCase } from '../api/types.js';
import { may } from '../logic/permissions.js';
import { pathOf } from '../logic/routes.js';
import { Ago, Button, Cut, Facts, Id, Panel, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Empty } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { useApp, usePages, useWords } from '../shell/hooks.js';

const OPEN = { state: 'open' };

/** Shows open cases: money that a person must settle. */
export function PaymentCases() {
  const { api, me } = useApp();
  const { t, f } = useWords();
  const words = t.refunds.cases;
  const cases = usePages<PaymentCase, { cases: readonly PaymentCase[]; next: string | null }>(
    '/admin/v1/payment-cases',
    OPEN,
    { place: 'after', read: (page) => ({ rows: page.cases, next: page.next }) },
  );
  const [picked, setPicked] = useState<PaymentCase | null>(null);
  const money = ({ amountCents, currency }: PaymentCase): string =>
    amountCents === null ? '–' : f.money(amountCents, currency);
  const columns: readonly Column<PaymentCase>[] = [
    { name: words.kind, width: '180px', phoneWidth: '120px', cell: ({ kind }) => t.refunds.cases.kinds[kind] },
    { name: t.refunds.amount, isNumber: true, width: '100px', phoneWidth: '84px', cell: money },
    {
      name: t.common.order,
      hides: 'phone',
      width: '160px',
      cell: ({ orderId }) =>
        orderId === null ? '–' : <Id text={orderId} to={pathOf({ screen: 'purchases', id: orderId })} />,
    },
    { name: words.detail, hides: 'phone', cell: ({ detail }) => <Cut text={detail} lang="en" /> },
    { name: t.refunds.created, hides: 'phone', width: '100px', cell: ({ createdAt }) => <Ago at={createdAt} /> },
    ...(may(me.role, 'admin')
      ? [
          {
            name: t.common.action,
            width: '124px',
            phoneWidth: '112px',
            cell: (one: PaymentCase) => <Button onClick={() => setPicked(one)}>{words.close}</Button>,
          },
        ]
      : []),
  ];
  const close = async ({ caseId }: PaymentCase): Promise<string> => {
    await api.ask(`/admin/v1/payment-cases/${caseId}/close`, { method: 'POST' });
    return words.closed;
  };
  return (
    <Panel title={words.title} flush>
      <Table
        label={words.title}
        columns={columns}
        rows={cases.rows}
        keyOf={({ caseId }) => caseId}
        empty={<Empty title={words.empty} text={words.emptyText} />}
        error={cases.error}
        isLoading={cases.isLoading}
        onRetry={cases.reload}
        hasMore={cases.hasMore}
        onMore={cases.more}
      />
      {picked && (
        <Confirm
          title={words.closeTitle}
          text={words.closeText}
          verb={words.close}
          run={() => close(picked)}
          audit={{ subject: `payment_case:${picked.caseId}` }}
          onClose={() => setPicked(null)}
          onDone={cases.reload}
        >
          <Facts
            facts={[
              [words.kind, t.refunds.cases.kinds[picked.kind]],
              [t.refunds.amount, <b>{money(picked)}</b>],
              [t.refunds.payment, picked.paymentId === null ? '–' : <Id text={picked.paymentId} />],
              [words.subject, <Id text={picked.subject} />],
              [words.detail, <span lang="en">{picked.detail}</span>],
              [t.refunds.created, <Time at={picked.createdAt} />],
            ]}
          />
        </Confirm>
      )}
    </Panel>
  );
}
